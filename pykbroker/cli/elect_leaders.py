"""`pykbroker elect-leaders`: the flags and texts of `kafka-leader-election`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from .command import ClientCommand, CommandFailed, bootstrap_options
from .confirmation import yes_option
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples

_WAYS: Final = "--topic, --all-topic-partitions, --path-to-json-file"


@click.command(
    "elect-leaders",
    cls=ClientCommand,
    epilog=examples(
        ("Preferred leaders lead again", "pykbroker elect-leaders --all-topic-partitions"),
        (
            "A leader that may lack records, for a partition that has none",
            "pykbroker elect-leaders --election-type unclean --topic orders --partition 0",
        ),
    ),
)
@bootstrap_options
@click.option(
    "--election-type",
    type=click.Choice(["preferred", "unclean"], case_sensitive=False),
    default="preferred",
    show_default=True,
    help="The first of the replicas, or any that is alive.",
)
@click.option("--topic", metavar="NAME", help="The topic; with --partition, or all of its partitions.")
@click.option("--partition", type=click.IntRange(0, 2**31 - 1), metavar="N", help="With --topic.")
@click.option("--all-topic-partitions", is_flag=True, help="All partitions where an election changes something.")
@click.option(
    "--path-to-json-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='{"partitions": [{"topic": "t", "partition": 0}]}',
)
@json_option
@yes_option
def command(**flags: Any) -> None:
    """Elect leaders of partitions: the preferred ones, or unclean ones, which asks, for records may be lost."""
    from .election_actions import ElectionOptions, elect

    options = ElectionOptions(**flags)
    given = [options.topic is not None, options.all_topic_partitions, options.path_to_json_file is not None]
    if sum(given) != 1:
        raise CommandFailed(f"One and only one of the following options is required: {_WAYS}")
    if options.partition is not None and options.topic is None:
        raise CommandFailed("Option partition is only allowed if topic is used")
    if run_on_cluster(elect, options, client_id="elect-leaders"):
        raise SystemExit(1)
