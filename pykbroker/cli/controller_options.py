"""The options of commands that may ask controllers in place of brokers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

import click
from click.core import ParameterSource

from .command import CommandFailed, bootstrap_options

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster
    from pykbroker.client.metadata import Node

P = ParamSpec("P")
T = TypeVar("T")

_NOT_GIVEN: Final = (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)


def controller_options(function: Callable[P, T]) -> Callable[P, T]:
    """Add `--bootstrap-controller` to the options of `bootstrap_options`."""
    function = click.option(
        "--bootstrap-controller",
        metavar="HOST:PORT[,…]",
        help="The controllers to ask, in place of brokers.",
    )(function)
    return bootstrap_options(function)


@dataclass(frozen=True, slots=True)
class Where:
    """The nodes to ask: those of bootstrap_controller, where it is given. Raises CommandFailed where both are."""

    given_server: str
    given_controller: str | None
    command_config: Path | None

    def __post_init__(self) -> None:
        source = click.get_current_context().get_parameter_source("bootstrap_server")
        if self.asks_controllers and source not in _NOT_GIVEN:
            raise CommandFailed("Please don't specify both --bootstrap-server and --bootstrap-controller")

    @property
    def asks_controllers(self) -> bool:
        return self.given_controller is not None

    @property
    def bootstrap_server(self) -> str:
        return self.given_server if self.given_controller is None else self.given_controller


@dataclass(frozen=True, slots=True)
class OptionsOfEither:
    """The base of the options of commands that ask brokers or controllers."""

    where: Where

    @property
    def bootstrap_server(self) -> str:
        return self.where.bootstrap_server

    @property
    def command_config(self) -> Path | None:
        return self.where.command_config


async def node_to_ask(cluster: Cluster, options: OptionsOfEither) -> Node | None:
    """Return the active controller where controllers are asked; None stands for any broker."""
    from pykbroker.client.brokers import active_controller

    return await active_controller(cluster) if options.where.asks_controllers else None
