"""`pykbroker delete-records`: up to a place in a topic, or with the flags, the file and the texts of
`kafka-delete-records`.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from .command import ClientCommand, CommandFailed, bootstrap_options, reject
from .confirmation import yes_option
from .connect import run_on_cluster
from .delete_records_options import DeleteRecordsOptions, read_offsets
from .entries import json_option
from .examples import examples


@click.command(
    "delete-records",
    cls=ClientCommand,
    epilog=examples(
        ("All that a topic has", "pykbroker delete-records --topic orders --before end"),
        ("Up to an offset of one partition", "pykbroker delete-records --topic orders --partition 0 --before 1000"),
        ("What is older than a week, in a script", "pykbroker delete-records --topic orders --before '7d ago' --yes"),
    ),
)
@bootstrap_options
@click.option("--topic", metavar="NAME", help="The topic.")
@click.option(
    "--partition",
    "partitions",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="With --topic: this partition; may be repeated. Default: all.",
)
@click.option(
    "--before",
    metavar="OFFSET|TIME|end",
    help="With --topic: records in front of 1000, end, end-100, 2026-01-31T12:00:00Z, '7d ago', yesterday.",
)
@click.option(
    "--offset-json-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='{"partitions": [{"topic": "t", "partition": 0, "offset": 10}], "version": 1}; -1 is the high watermark.',
)
@yes_option
@json_option
def command(
    bootstrap_server: str,
    command_config: Path | None,
    topic: str | None,
    partitions: tuple[int, ...],
    before: str | None,
    offset_json_file: Path | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete the records of partitions up to given offsets."""
    if offset_json_file is not None:
        given = {"--topic": topic, "--partition": partitions, "--before": before}
        reject(given, "and --offset-json-file exclude each other")
    elif topic is None or before is None:
        raise CommandFailed("Say what to delete: --topic T --before OFFSET|TIME|end, or --offset-json-file FILE")
    options = DeleteRecordsOptions(
        bootstrap_server,
        command_config,
        None if offset_json_file is None else read_offsets(offset_json_file),
        topic or "",
        tuple(dict.fromkeys(partitions)),
        before or "",
        yes=yes,
        as_json=as_json,
    )
    from .delete_records_actions import check_place, delete

    check_place(options, time.time_ns() // 1_000_000)
    if run_on_cluster(delete, options, client_id="delete-records") and offset_json_file is None:
        raise SystemExit(1)
