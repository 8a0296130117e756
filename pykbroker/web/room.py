"""The room that log directories have: what their volumes say, and which writes they refused.

A volume is asked in a thread, since one that hangs (NFS without its server) answers nobody: the question then counts as
not answered, and no further one is asked of that volume until it was. Writes that were refused lately count whatever
the volume says, as quotas and reserved blocks are none of its figures.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import trio

from pykbroker.storage.files.disk import DiskSpace, OsDisk
from pykbroker.storage.files.errors import FileError

if TYPE_CHECKING:
    from pykbroker.server.logs.full_directories import Refused
    from pykbroker.server.node.composition.parts import NodeParts

_LEAST_BYTES: Final = 1024 * 1024
"""With less of it a volume is full: a new segment's indexes may not fit."""
_LATELY_MS: Final = 10_000
_WAIT_S: Final = 2.0
_NO_SPACE: Final = "No space left on device"


@dataclass(frozen=True, slots=True)
class Directory:
    """A log directory. space: asks its volume, and raises FileError; None where the directory is offline."""

    path: str
    space: Callable[[], DiskSpace] | None
    refused: Refused | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """The room of a directory. usable_bytes: None where nobody knows. want: why it takes no writes, empty otherwise."""

    usable_bytes: int | None
    want: str


@dataclass(slots=True)
class RoomLook:
    """A look at directories, of which each is asked by one thread at a time."""

    _limiters: dict[str, trio.CapacityLimiter] = field(default_factory=dict)

    async def rooms(self, directories: list[Directory]) -> dict[str, Room]:
        """Return the rooms by path, within a time; of what is offline none."""
        spaces: dict[str, DiskSpace | str] = {}

        async def ask(directory: Directory) -> None:
            assert directory.space is not None
            spaces[directory.path] = await self._space(directory.path, directory.space)

        async with trio.open_nursery() as nursery:
            online = [each for each in directories if each.space is not None]
            for each in online:
                nursery.start_soon(ask, each)
        return {each.path: _room(spaces[each.path], each.refused) for each in online}

    async def _space(self, path: str, space: Callable[[], DiskSpace]) -> DiskSpace | str:
        limiter = self._limiters.setdefault(path, trio.CapacityLimiter(1))
        try:
            with trio.move_on_after(_WAIT_S):
                return await trio.to_thread.run_sync(space, limiter=limiter, abandon_on_cancel=True)
        except FileError as error:
            return error.error.strerror or str(error)
        return "its volume does not answer"


def _room(space: DiskSpace | str, refused: Refused | None) -> Room:
    lately = refused.reason if refused is not None and refused.ago_ms < _LATELY_MS else ""
    if isinstance(space, str):
        return Room(None, lately or space)
    is_full = space.total_bytes > 0 and space.usable_bytes < _LEAST_BYTES
    return Room(space.usable_bytes, lately or (_NO_SPACE if is_full else ""))


def log_directories(parts: NodeParts) -> list[Directory]:
    """Return a node's directories: those of its partitions, and that of the metadata log."""
    raft = parts.node.raft
    metadata_path = posixpath.abspath(parts.node.config.metadata_log_dir)
    refused = {posixpath.abspath(posixpath.dirname(path)): each for path, each in raft.full.refused_last().items()}
    found: dict[str, Directory] = {}
    if parts.broker_role is not None:
        replicas = parts.broker_role.broker.partitions
        refused |= replicas.failures.full.refused_last()
        for path, directory in replicas.log_directories().items():
            found[path] = Directory(path, None if directory is None else directory.space, refused.get(path))
    if metadata_path not in found:
        found[metadata_path] = Directory(
            metadata_path, lambda: OsDisk().space(metadata_path), refused.get(metadata_path)
        )
    return list(found.values())
