"""The cluster that `--bootstrap-server` and `--command-config` name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from pykbroker.client.cluster import Cluster

from .command import CommandFailed, run


class ClusterOptions(Protocol):
    """The options that `bootstrap_options` gives a command."""

    @property
    def bootstrap_server(self) -> str: ...
    @property
    def command_config(self) -> Path | None: ...


Options = TypeVar("Options", bound=ClusterOptions)
T = TypeVar("T")


def run_on_cluster(action: Callable[[Cluster, Options], Awaitable[T]], options: Options, *, client_id: str) -> T:
    """A command that does one thing with one cluster, to its end; what the action returns."""
    properties = read_client_properties(options.command_config)

    async def work() -> T:
        async with open_cluster(options.bootstrap_server, properties, client_id=client_id) as cluster:
            return await action(cluster, options)

    return run(work)


def read_client_properties(path: Path | None) -> dict[str, str]:
    """The settings in a properties file; none without a file."""
    if path is None:
        return {}
    from pykbroker.config.keys import ConfigurationError
    from pykbroker.config.properties import read_properties

    try:
        return read_properties(path)
    except ConfigurationError as error:
        raise CommandFailed(str(error)) from None


def open_cluster(bootstrap_server: str, properties: Mapping[str, str], *, client_id: str) -> Cluster:
    """An async context manager. Settings that this client does not have are ignored. Raises CommandFailed."""
    from pykbroker.client.from_properties import cluster_of
    from pykbroker.config.keys import ConfigurationError

    try:
        return cluster_of(bootstrap_server, properties, client_id=client_id)
    except ConfigurationError as error:
        raise CommandFailed(str(error)) from None


def whole_number(properties: Mapping[str, str], name: str, default: int) -> int:
    """A setting that is a number of something, not negative. Raises CommandFailed."""
    from pykbroker.client import from_properties
    from pykbroker.config.keys import ConfigurationError

    try:
        return from_properties.whole_number(properties, name, default)
    except ConfigurationError as error:
        raise CommandFailed(str(error)) from None
