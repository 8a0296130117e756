"""The work of a fork (`broker.Fork`): directories and ports of its own, and a copy of what its source has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Final

from pykbroker.config import BrokerConfig
from pykbroker.config.listeners import parse_endpoint
from pykbroker.control.clocks.clocks import Clocks
from pykbroker.control.control import Control
from pykbroker.control.savepoints import saving
from pykbroker.control.savepoints.errors import SavepointRefused, one_line
from pykbroker.control.savepoints.node_copy import Rewinding, copy_node
from pykbroker.control.savepoints.volumes import directory_beside
from pykbroker.server.quorum.formatting import directory_paths, partition_paths
from pykbroker.storage.files.errors import StorageError

from .hosted_node import HostedNode
from .reserved_port import ReservedPort

_DIRECTORIES: Final = ("log.dirs", "log.dir", "metadata.log.dir")
_WITH_PORTS: Final = (
    "listeners",
    "advertised.listeners",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
)
_PORT: Final = re.compile(r"(?<=:)\d+(?=\s*(?:,|$))")


def without_directories(config: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in config.items() if key not in _DIRECTORIES}


def new_directory(source: BrokerConfig) -> AbstractContextManager[Path]:
    """Make a directory on the volume of the source's data, where that is possible."""
    return directory_beside(directory_paths(source))


def log_directories(source: BrokerConfig, directory: Path) -> dict[str, str]:
    """Return the log directories of the fork, as many as the source has."""
    paths = directory_paths(source)
    new = {path: str(directory / f"data{number or ''}") for number, path in enumerate(paths)}
    return {
        "log.dirs": ",".join(new[path] for path in partition_paths(source)),
        "metadata.log.dir": new[paths[0]],
    }


def at_other_ports(
    properties: Mapping[str, str], reserve: Callable[[int], ReservedPort], port: int = 0
) -> tuple[dict[str, str], list[ReservedPort]]:
    """Return the properties with other ports in the place of those that the source listens on: `port`, or free ones."""
    listeners = [parse_endpoint("listeners", each) for each in properties["listeners"].split(",")]
    ports = {str(old): reserve(port) for _, _, old in listeners if old}

    def other(match: re.Match[str]) -> str:
        port = ports.get(match[0])
        return match[0] if port is None else str(port.port)

    moved = {key: _PORT.sub(other, text) for key, text in properties.items() if key in _WITH_PORTS}
    return {**properties, **moved}, list(ports.values())


def rewinding_to(source: HostedNode, at: int | None) -> Rewinding | None:
    """Return what cuts copies of the source back to an entry of its journal."""
    return None if at is None else partial(_control(source).rewind_to, at)


async def save(source: HostedNode, path: Path, at: int | None) -> None:
    """Write a savepoint. In the source's loop. Raises SavepointRefused."""
    advances = _control(source).advances_at(at)
    await saving.save_node(source.node, path, rewinding_to(source, at), advances=advances)


def unpack(path: Path, node: HostedNode, *, durably: bool) -> None:
    """Write the log directories of a node that begins with a savepoint, and set its clocks. Raises InvalidSavepoint,
    SavepointRefused.
    """
    manifest = saving.unpack(path, node.config, durably=durably)
    _control(node).clocks = Clocks(manifest.advances)


async def copy(source: HostedNode, fork: HostedNode, at: int | None) -> None:
    """Write the fork's log directories, and set its clocks. In the source's loop. Raises SavepointRefused."""
    targets = list(map(Path, directory_paths(fork.config)))
    advances = _control(source).advances_at(at)
    try:
        await copy_node(source.node, targets, rewinding_to(source, at))
    except (OSError, StorageError) as error:
        raise SavepointRefused(f"the fork cannot be written: {one_line(error)}") from None
    _control(fork).clocks = Clocks(advances)


def _control(node: HostedNode) -> Control:
    assert node.control is not None, "each node of a test has control"
    return node.control
