"""Flags that the `pykbroker perf` commands have in common, and the forms in which Kafka's tools take them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import click
from click.core import ParameterSource

from .command import ClientCommand, CommandFailed, bootstrap_options, key_values
from .connect import open_cluster, read_client_properties
from .perf_dates import DEFAULT_PATTERN

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster

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


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster to measure, and the settings of the client, by Kafka's names."""

    bootstrap_server: str
    properties: dict[str, str]

    def open(self, client_id: str) -> Cluster:
        """An async context manager."""
        return open_cluster(self.bootstrap_server, self.properties, client_id=client_id)


def target_options(function: Callable[..., None]) -> Callable[..., None]:
    """Kafka's ways to name a cluster and to give settings of a client, as the argument `target`."""

    @wraps(function)
    def with_target(
        bootstrap_server: str,
        command_config: Path | None,
        older_config: Path | None,
        given_properties: tuple[str, ...],
        **options: Any,
    ) -> None:
        if command_config is not None and older_config is not None:
            raise CommandFailed("Only one of --command-config and its older name can be specified")
        properties = read_client_properties(command_config or older_config)
        properties |= key_values(given_properties, "--command-property")
        if click.get_current_context().get_parameter_source("bootstrap_server") is ParameterSource.DEFAULT:
            bootstrap_server = properties.get("bootstrap.servers", bootstrap_server)
        function(target=Target(bootstrap_server, properties), **options)

    decorated: Callable[..., None] = with_target
    decorated = click.option(
        "--producer.config",
        "--consumer.config",
        "older_config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The older name of --command-config.",
    )(decorated)
    decorated = click.option(
        "--command-property",
        "--producer-props",
        "given_properties",
        multiple=True,
        metavar="K=V",
        help="Settings of the client, which take precedence over those of the file.",
    )(decorated)
    return bootstrap_options(decorated)


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


def timeout_option(function: Callable[P, T]) -> Callable[P, T]:
    return click.option(
        "--timeout",
        type=click.IntRange(0, 2**31 - 1),
        default=10_000,
        show_default=True,
        metavar="MS",
        help="End when nothing came for so long.",
    )(function)


def line_options(function: Callable[P, T]) -> Callable[P, T]:
    """The form of a consumer's lines: `hide_header` and `date_format`."""
    dated = click.option(
        "--date-format", default=DEFAULT_PATTERN, show_default=True, metavar="PATTERN", help="As in Java."
    )(function)
    return click.option("--hide-header", is_flag=True, help="Leave out the header of the lines.")(dated)


def socket_buffer_option(function: Callable[P, T]) -> Callable[P, T]:
    return click.option(
        "--socket-buffer-size", type=click.IntRange(0, 2**31 - 1), metavar="BYTES", help="Taken, without effect."
    )(function)
