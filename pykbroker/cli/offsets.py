"""`pykbroker offsets`: where partitions begin and end, in words, or with the flags and lines of `kafka-get-offsets`."""

from __future__ import annotations

from typing import Any

import click

from .command import bootstrap_options
from .connect import run_on_cluster
from .entries import json_option
from .examples import examples
from .two_forms import TwoForms

CLIENT_ID = "offsets"
_partitions = click.option("--partitions", metavar="N,N", help="Only partitions of these numbers.")
_patterns = click.option(
    "--topic-partitions", metavar="T:P,T:P-P", help="Patterns in place of both: orders:1,users:0-2,clicks.*:5-."
)
_time = click.option(
    "--time",
    "time_text",
    default="latest",
    show_default=True,
    metavar="TIME",
    help="latest, earliest, max-timestamp, earliest-local, latest-tiered, earliest-pending-upload, -1 to -6, "
    "milliseconds, 2026-11-29T10:00:00Z, '5m ago', today.",
)
_no_internal = click.option("--exclude-internal-topics", is_flag=True, help="Leave out internal topics.")


@click.group(
    "offsets",
    cls=TwoForms,
    like="kafka-get-offsets",
    epilog=examples(
        ("A table of ends", "pykbroker offsets list orders"),
        ("Lines of kafka-get-offsets", "pykbroker offsets --topic orders --time earliest"),
    ),
)
@bootstrap_options
@click.option("--topic", metavar="REGEX", help="Topics whose whole names match. Default: all.")
@_partitions
@_patterns
@_time
@_no_internal
def command(**flags: Any) -> None:
    """List offsets of partitions: their ends, their beginnings, or by time."""
    from . import offset_actions

    if run_on_cluster(offset_actions.print_lines, offset_actions.OffsetOptions(**flags), client_id=CLIENT_ID):
        raise SystemExit(1)


@command.command(
    "list",
    epilog=examples(
        ("The ends of a topic's partitions", "pykbroker offsets list orders"),
        ("The first records of the last five minutes", "pykbroker offsets list orders --time '5m ago' --json"),
    ),
)
@bootstrap_options
@click.argument("names", nargs=-1, metavar="[NAME …]")
@click.option("--topic", metavar="REGEX", help="Topics whose whole names match.")
@_partitions
@_patterns
@_time
@_no_internal
@json_option
def list_(**flags: Any) -> None:
    """Show an offset of each partition; with exit code 1 where a leader does not tell."""
    from . import offset_actions

    if run_on_cluster(offset_actions.print_table, offset_actions.OffsetOptions(**flags), client_id=CLIENT_ID):
        raise SystemExit(1)
