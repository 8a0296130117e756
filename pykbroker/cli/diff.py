"""`pykbroker diff`: one client script on two brokers, and what they did differently.

It ends with 0 where both did the same, with 1 where they did not, and with 2 where that could not be found out.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from .command import CommandFailed, key_values
from .connect import read_client_properties
from .diff_failure import DiffCommand, Failed
from .examples import examples
from .output import warn

SAME, DIFFERENT = 0, 1
_TIMEOUT_S = 300
_LEFT, _RIGHT = "left", "right"
_HOW_IT_IS_REACHED = "Properties file with client settings (security.protocol); the script itself goes without TLS."


@click.command(
    "diff",
    cls=DiffCommand,
    epilog=examples(
        (
            "An old and a new broker",
            "pykbroker diff --left-start 2.8 --right-start 4.3 -- python client.py",
        ),
        (
            "A cluster and pykbroker",
            "pykbroker diff --left kafka:9092 --right-start= --json -- python client.py",
        ),
    ),
)
@click.option("--left", metavar="HOST:PORT[,…]", help="A running cluster.")
@click.option(
    "--left-start", is_flag=False, flag_value="", metavar="[NAME|FILE]", help="A pykbroker for this run, --as NAME."
)
@click.option("--left-command-config", type=click.Path(path_type=Path), metavar="FILE", help=_HOW_IT_IS_REACHED)
@click.option("--right", metavar="HOST:PORT[,…]", help="A running cluster.")
@click.option(
    "--right-start", is_flag=False, flag_value="", metavar="[NAME|FILE]", help="A pykbroker for this run, --as NAME."
)
@click.option("--right-command-config", type=click.Path(path_type=Path), metavar="FILE", help=_HOW_IT_IS_REACHED)
@click.option(
    "--override", "overrides", multiple=True, metavar="KEY=VALUE", help="A property of brokers that are started."
)
@click.option("--json", "as_json", is_flag=True, help="Print the differences as JSON.")
@click.option("--timeout", type=click.IntRange(1, 86400), default=_TIMEOUT_S, show_default=True, metavar="SECONDS")
@click.argument("script", nargs=-1, required=True, metavar="-- COMMAND [ARGUMENT]…")
def command(
    left: str | None,
    left_start: str | None,
    left_command_config: Path | None,
    right: str | None,
    right_start: str | None,
    right_command_config: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
    timeout: int,
    script: tuple[str, ...],
) -> None:
    """Run a script of a client on two brokers, and print what they did differently.

    The script finds its broker in BOOTSTRAP_SERVERS or KAFKA_BOOTSTRAP_SERVERS, or as {bootstrap} in its arguments.
    """
    from .diff_run import DiffOptions, Side, find_differences, report

    sides = []
    try:
        for name, address, start, file in (
            (_LEFT, left, left_start, left_command_config),
            (_RIGHT, right, right_start, right_command_config),
        ):
            if (address is None) == (start is None):
                raise CommandFailed(f"give either --{name} or --{name}-start")
            sides.append(Side(name, address, start, read_client_properties(file)))
        properties = key_values(overrides, "--override")
    except CommandFailed as error:
        raise Failed(error.format_message()) from None
    options = DiffOptions(sides[0], sides[1], properties, script, timeout)
    found = find_differences(options)
    for each in found.remarks:
        warn(each)
    click.echo(json.dumps(report(found), indent=2) if as_json else "\n".join(found.lines()) or "no differences")
    raise SystemExit(DIFFERENT if found.differences else SAME)
