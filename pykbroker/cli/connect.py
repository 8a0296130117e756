"""The cluster that `--bootstrap-server` and `--command-config` name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from .command import CommandFailed, run

if TYPE_CHECKING:
    from pykbroker.client.cluster import Cluster


class ClusterOptions(Protocol):
    """The options that `bootstrap_options` gives a command."""

    @property
    def bootstrap_server(self) -> str: ...
    @property
    def command_config(self) -> Path | None: ...


Options = TypeVar("Options", bound=ClusterOptions)
T = TypeVar("T")


def run_on_cluster(
    action: Callable[[Cluster, Options], Awaitable[T]],
    options: Options,
    *,
    client_id: str,
    timeout_ms: int | None = None,
) -> T:
    """A command that does one thing with one cluster, to its end; what the action returns.

    timeout_ms: how long each request is tried, in place of what the settings say.
    """
    properties = read_client_properties(options.command_config)
    if timeout_ms is not None:
        properties["default.api.timeout.ms"] = str(timeout_ms)

    async def work() -> T:
        async with (
            open_cluster(options.bootstrap_server, properties, client_id=client_id) as cluster,
            suggesting_topics(cluster),
        ):
            return await action(cluster, options)

    return run(work)


@asynccontextmanager
async def suggesting_topics(cluster: Cluster) -> AsyncIterator[None]:
    """Turn the error of a topic that does not exist into one that names those spelled alike. Raises CommandFailed."""
    from pykbroker.client.errors import UnknownTopic

    try:
        yield
    except UnknownTopic as error:
        if error.topic is None:
            raise
        from pykbroker.client.topics import list_topics

        from .suggestions import did_you_mean

        hint = did_you_mean(error.topic, [each.name for each in await list_topics(cluster)])
        raise CommandFailed(f"{error}.{hint}" if hint else str(error)) from None


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

    if properties:
        from .client_keys import check_client_keys

        check_client_keys(properties)
    try:
        return cluster_of(bootstrap_server, properties, client_id=client_id, look_closer=_look_closer(properties))
    except ConfigurationError as error:
        raise CommandFailed(str(error)) from None


def _look_closer(properties: Mapping[str, str]) -> Callable[[str, int], Awaitable[str]]:
    async def look(host: str, port: int) -> str:
        from .strangers import stranger_at

        return await stranger_at(host, port, properties)

    return look


def whole_number(properties: Mapping[str, str], name: str, default: int) -> int:
    """A setting that is a number of something, not negative. Raises CommandFailed."""
    from pykbroker.client import from_properties
    from pykbroker.config.keys import ConfigurationError

    try:
        return from_properties.whole_number(properties, name, default)
    except ConfigurationError as error:
        raise CommandFailed(str(error)) from None
