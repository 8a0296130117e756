"""A fork: a broker that begins with all that another one has at that moment, on a port of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from pykbroker.config.listeners import parse_endpoint
from pykbroker.control.savepoints.node_copy import copy_node
from pykbroker.control.savepoints.volumes import directory_beside
from pykbroker.server.quorum.formatting import directory_paths, partition_paths

from .broker import AsyncBroker, Broker, Config
from .errors import BrokerNotRunning
from .hosted_node import HostedNode
from .reserved_port import ReservedPort

if TYPE_CHECKING:
    from pykbroker.control.savepoints.node_cut import NodeCut

_DIRECTORIES: Final = ("log.dirs", "log.dir", "metadata.log.dir")
_WITH_PORTS: Final = (
    "listeners",
    "advertised.listeners",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
)
_PORT: Final = re.compile(r"(?<=:)\d+(?=\s*(?:,|$))")


class Fork(Broker):
    """A fork of `source`, whose data goes with it. It is open when `Broker.fork` returns it.

    Neither sees what the other one does, and either may be closed first. config: that of the source.
    """

    def __init__(self, source: Broker, config: Config, client_properties: Mapping[str, str], *, port: int = 0) -> None:
        source.running_loop()
        self._source: Broker | None = source
        self._of: Final = source.nodes[0].config
        kept = {key: value for key, value in config.items() if key not in _DIRECTORIES}
        super().__init__(kept, port=port, client_properties=client_properties)

    def open(self) -> None:
        """Take over what the source has. Raises BrokerNotRunning, SavepointRefused, BrokerFailed."""
        if self._source is None and not self.is_open:
            raise BrokerNotRunning("the fork was closed, and its data is gone: make another one")
        super().open()
        self._source = None

    def __enter__(self) -> Self:
        return self if self.is_open else super().__enter__()

    async def __aenter__(self) -> AsyncBroker:
        return self.aio if self.is_open else await super().__aenter__()

    def _ephemeral_directory(self) -> AbstractContextManager[Path]:
        return directory_beside(directory_paths(self._of))

    def _directories(self, directory: Path) -> dict[str, str]:
        metadata, *_ = paths = directory_paths(self._of)
        new = {path: str(directory / f"data{number or ''}") for number, path in enumerate(paths)}
        return {
            "log.dirs": ",".join(new[path] for path in partition_paths(self._of)),
            "metadata.log.dir": new[metadata],
        }

    def _at_ports(
        self, properties: dict[str, str], reserve: Callable[[int], ReservedPort]
    ) -> tuple[dict[str, str], list[ReservedPort]]:
        if "listeners" not in properties:
            return super()._at_ports(properties, reserve)
        listeners = [parse_endpoint("listeners", each) for each in properties["listeners"].split(",")]
        ports = {str(old): reserve(0) for _, _, old in listeners if old}

        def other(match: re.Match[str]) -> str:
            port = ports.get(match[0])
            return match[0] if port is None else str(port.port)

        moved = {key: _PORT.sub(other, text) for key, text in properties.items() if key in _WITH_PORTS}
        return {**properties, **moved}, list(ports.values())

    def _fill_directories(self, nodes: Sequence[HostedNode]) -> None:
        assert self._source is not None
        (node,) = nodes
        self._source.running_loop().call(_copy, self._source.nodes[0], directory_paths(node.config))


async def _copy(source: HostedNode, paths: Sequence[str]) -> NodeCut:
    return await copy_node(source.node, list(map(Path, paths)))
