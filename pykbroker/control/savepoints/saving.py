"""A savepoint of a running node, and the log directories of a node that begins from one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType

import trio

from pykbroker.config import BrokerConfig
from pykbroker.control.clocks.clocks import Advances
from pykbroker.server.node.node import Node
from pykbroker.server.quorum.formatting import directory_paths
from pykbroker.server.runtime.ephemeral_directories import OWNER_FILE
from pykbroker.storage.files.errors import StorageError

from .archive import read_manifest, unpack_archive, write_archive
from .errors import SavepointRefused, one_line
from .manifest import Manifest
from .node_copy import Rewinding, copy_node
from .node_cut import parts_of
from .volumes import directory_beside

_NOBODYS = (OWNER_FILE, "lost+found")
"""Names that an empty log directory may have."""


async def save_node(
    node: Node | None,
    path: Path,
    rewinding: Rewinding | None = None,
    *,
    advances: Advances = MappingProxyType({}),
) -> Manifest:
    """Write the state of a running node, as it is at one moment after the call, into a file, which is replaced. On the
    node's event loop. rewinding: makes it that of a moment before. advances: those of its clocks.

    Raises SavepointRefused.
    """
    parts, _ = parts_of(node)
    threads, clock = parts.node.threads, parts.node.clock
    paths = directory_paths(parts.node.config)
    resources = ExitStack()
    try:
        directory = await threads.run(resources.enter_context, directory_beside(paths))
        targets = [directory / str(number) for number in range(len(paths))]
        cut = await copy_node(node, targets, rewinding)
        archive = partial(write_archive, path, targets, cut.node_id, cut.cluster_id, clock.now_ms(), advances)
        return await threads.run(archive)
    except (OSError, StorageError) as error:
        raise SavepointRefused(f"the savepoint {path} cannot be written: {one_line(error)}") from None
    finally:
        with trio.CancelScope(shield=True):
            await threads.run(resources.close)


def node_id_of(path: Path) -> int:
    """Return the id of the node that a savepoint is of. Raises InvalidSavepoint, SavepointRefused."""
    try:
        return read_manifest(path).node_id
    except OSError as error:
        raise SavepointRefused(f"the savepoint {path} cannot be read: {one_line(error)}") from None


def unpack(path: Path, config: BrokerConfig, *, durably: bool) -> Manifest:
    """Write the log directories of a node that begins from a savepoint; all of them must be empty, or not there.

    Raises InvalidSavepoint, SavepointRefused; then nothing is left of it.
    """
    directories = list(map(Path, directory_paths(config)))
    made: list[Path] = []
    try:
        manifest = read_manifest(path)
        _check(manifest, path, config, directories)
        for directory in directories:
            if not directory.exists():
                directory.mkdir(parents=True)
                made.append(directory)
        return unpack_archive(path, directories, durably=durably)
    except BaseException as error:
        for directory in made:
            if not any(directory.iterdir()):
                directory.rmdir()
        if isinstance(error, OSError | StorageError):
            raise SavepointRefused(f"the savepoint {path} cannot be unpacked: {one_line(error)}") from None
        raise


def _check(manifest: Manifest, path: Path, config: BrokerConfig, directories: Sequence[Path]) -> None:
    if config.node_id != manifest.node_id:
        raise SavepointRefused(f"the savepoint {path} is of node {manifest.node_id}, and node.id is {config.node_id}")
    if set(config.roles) != {"broker", "controller"}:
        raise SavepointRefused("a savepoint is for a node that is broker and controller: see process.roles")
    if len(directories) != manifest.directories:
        raise SavepointRefused(
            f"the savepoint {path} has {manifest.directories} log directories, and log.dirs with metadata.log.dir "
            f"name {len(directories)}"
        )
    for directory in directories:
        if directory.exists() and not set(os.listdir(directory)) <= set(_NOBODYS):
            raise SavepointRefused(f"the log directory {directory} is not empty: a savepoint begins in an empty one")
