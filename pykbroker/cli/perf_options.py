"""Flags that the `pykbroker perf` commands have in common, and the forms in which Kafka's tools take them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import click

from .command import ClientCommand, CommandFailed, key_values
from .connect import read_client_properties

P = ParamSpec("P")
T = TypeVar("T")

_LISTS: Final = ("--producer-props", "--command-property")
"""Kafka's tool takes several values behind one of these."""
MOST_RECORDS: Final = 2**63 - 1


class PerfCommand(ClientCommand):
    """A command of which `--producer-props a=1 b=2` means `--producer-props a=1 --producer-props b=2`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _one_by_one(args))


def _one_by_one(args: list[str]) -> list[str]:
    spread: list[str] = []
    flag: str | None = None
    for index, text in enumerate(args):
        if text.startswith("-"):
            flag = text if text in _LISTS else None
        elif flag is not None and args[index - 1] != flag:
            spread.append(flag)
        spread.append(text)
    return spread


def number_between(
    least: float, most: float, *, none: float | None = None
) -> Callable[[click.Context, click.Parameter, str], float]:
    """A callback for an option that takes a number within limits. none: one more number, which means no limit."""

    def convert(ctx: click.Context, param: click.Parameter, value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not least <= number <= most and number != none:
            also = "" if none is None else f", or {none:g}"
            raise click.BadParameter(f"'{value}' is not a number from {least:g} to {most:g}{also}", ctx, param)
        return number

    return convert


def properties_options(function: Callable[P, T]) -> Callable[P, T]:
    """Kafka's ways to give settings of a client, as the arguments `older_config` and `given_properties`."""
    function = click.option(
        "--producer.config",
        "--consumer.config",
        "older_config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The older name of --command-config.",
    )(function)
    return click.option(
        "--command-property",
        "--producer-props",
        "given_properties",
        multiple=True,
        metavar="K=V",
        help="Settings of the client, which take precedence over those of the file.",
    )(function)


def client_properties(command_config: Path | None, older_config: Path | None, given: tuple[str, ...]) -> dict[str, str]:
    """The settings of all of them together. Raises CommandFailed."""
    if command_config is not None and older_config is not None:
        raise CommandFailed("Only one of --command-config and its older name can be specified")
    return {**read_client_properties(command_config or older_config), **key_values(given, "--command-property")}


def json_option(function: Callable[P, T]) -> Callable[P, T]:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end, and nothing else.")(
        function
    )


def interval_option(function: Callable[P, T]) -> Callable[P, T]:
    return click.option(
        "--reporting-interval",
        type=click.IntRange(min=100, max=86_400_000),
        default=1_000,
        show_default=True,
        metavar="MS",
        help="The time between two lines on the way.",
    )(function)


def print_metrics_option(function: Callable[P, T]) -> Callable[P, T]:
    return click.option(
        "--print-metrics", is_flag=True, help="Taken as in Kafka's tool; this client has no metrics of its own."
    )(function)
