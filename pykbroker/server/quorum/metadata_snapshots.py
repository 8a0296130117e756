"""The metadata log's snapshots are files, `<end offset>-<epoch>.checkpoint`, in the directory of the log (KIP-630).

A file has its final name when all of it is durable, so one that is not whole was damaged later. Not here: which one to
begin with (`metadata_log`), when to write or to delete one (`snapshot_generator`).
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Iterable, Sequence

from pykbroker.raft.snapshots import SnapshotId, StoredSnapshot
from pykbroker.storage.files.disk import Disk
from pykbroker.storage.files.errors import FileError
from pykbroker.storage.segments.segment import DELETED_SUFFIX, put_aside

from .snapshot_format import InvalidSnapshot, Snapshot, decode_snapshot

SUFFIX = ".checkpoint"
PARTIAL_SUFFIX = ".part"
DAMAGED_SUFFIX = ".damaged"
"""Behind the name of a snapshot that can't be read: it stays for whoever wants to look at it, and nothing uses it."""

_NAME = re.compile(r"([0-9]{20})-([0-9]{10})" + re.escape(SUFFIX))
_LEFTOVER = re.compile(rf"[0-9]{{20}}-[0-9]{{10}}.*({re.escape(PARTIAL_SUFFIX)}|{re.escape(DELETED_SUFFIX)})")

_log = logging.getLogger(__name__)


def file_name(snapshot_id: SnapshotId) -> str:
    return f"{snapshot_id.end_offset:020d}-{snapshot_id.epoch:010d}{SUFFIX}"


class MetadataSnapshots:
    """The snapshots of one directory. Opening it removes what a crash left half written or half deleted. Raises
    FileError.
    """

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._described: dict[SnapshotId, StoredSnapshot] = {}
        self._changing = disk.turn()
        """Threads write snapshots and set them aside, while the event loop takes over others and forgets old ones."""
        names = disk.list_directory(directory)
        for name in names:
            if _LEFTOVER.fullmatch(name):
                disk.remove(posixpath.join(directory, name))
        found = filter(None, map(_NAME.fullmatch, names))
        self._ids = sorted(SnapshotId(int(match[1]), int(match[2])) for match in found)

    @property
    def ids(self) -> Sequence[SnapshotId]:
        """Oldest first."""
        return self._ids

    def path(self, snapshot_id: SnapshotId) -> str:
        return posixpath.join(self._directory, file_name(snapshot_id))

    def read(self, snapshot_id: SnapshotId) -> Snapshot:
        """Raises InvalidSnapshot, FileError."""
        data = self._disk.read_file(self.path(snapshot_id))
        snapshot = decode_snapshot(data)
        self._described[snapshot_id] = StoredSnapshot(snapshot_id, len(data), snapshot.timestamp_ms)
        return snapshot

    def write(self, snapshot_id: SnapshotId, portions: Iterable[bytes]) -> int:
        """Durable when it returns; returns its size. Raises FileError; then nothing is left of it."""
        path = self.path(snapshot_id)
        partial = path + PARTIAL_SUFFIX
        try:
            file = self._disk.open(partial, create=True)
            try:
                file.truncate(0)
                for portion in portions:
                    file.append([portion])
                file.sync()
                size_bytes = file.size()
            finally:
                file.close()
            self._disk.rename(partial, path)
            self._disk.sync_directory(self._directory)
        except FileError:
            self._disk.remove(partial)
            raise
        self._add(snapshot_id)
        return size_bytes

    def _add(self, snapshot_id: SnapshotId) -> None:
        with self._changing:
            self._ids = sorted({*self._ids, snapshot_id})

    def size_bytes(self, snapshot_id: SnapshotId) -> int:
        """Raises FileError."""
        file = self._disk.open(self.path(snapshot_id))
        try:
            return file.size()
        finally:
            file.close()

    def write_chunk(self, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
        """A piece of one that comes from elsewhere, in their order; the first begins it anew. Raises FileError."""
        file = self._disk.open(self.path(snapshot_id) + PARTIAL_SUFFIX, create=True)
        try:
            file.truncate(position)
            file.append([data])
        finally:
            file.close()

    def complete(self, snapshot_id: SnapshotId) -> Snapshot:
        """All pieces are written: it is one of the snapshots, durable when this returns.

        Raises InvalidSnapshot, and nothing is left of it; FileError.
        """
        path = self.path(snapshot_id)
        partial = path + PARTIAL_SUFFIX
        data = self._disk.read_file(partial)
        try:
            snapshot = decode_snapshot(data)
        except InvalidSnapshot:
            self._disk.remove(partial)
            raise
        file = self._disk.open(partial)
        try:
            file.sync()
        finally:
            file.close()
        self._disk.rename(partial, path)
        self._disk.sync_directory(self._directory)
        self._add(snapshot_id)
        self._described[snapshot_id] = StoredSnapshot(snapshot_id, len(data), snapshot.timestamp_ms)
        return snapshot

    def read_bytes(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """A piece of the file, for those who fetch it. Raises FileError."""
        file = self._disk.open(self.path(snapshot_id))
        try:
            return file.read_at(position, min(max_bytes, file.size() - position))
        finally:
            file.close()

    def describe(self) -> list[StoredSnapshot]:
        """Oldest first, without those that can't be read. May run in a thread, beside whoever puts older ones out of
        use. Raises FileError.
        """
        stored: list[StoredSnapshot] = []
        for snapshot_id in list(self._ids):
            try:
                described = self._described.get(snapshot_id) or self._describe(snapshot_id)
            except FileError:
                if snapshot_id in self._ids:
                    raise
                continue
            if described is not None:
                stored.append(described)
        return stored

    def _describe(self, snapshot_id: SnapshotId) -> StoredSnapshot | None:
        """Return None of one that is set aside now, or was put out of use meanwhile."""
        try:
            self.read(snapshot_id)
        except InvalidSnapshot as error:
            self.set_aside(snapshot_id, error)
        return self._described.get(snapshot_id)

    def set_aside(self, snapshot_id: SnapshotId, error: InvalidSnapshot) -> None:
        """Set a damaged snapshot aside; from now on it is none of the snapshots."""
        path = self.path(snapshot_id)
        _log.error("the metadata snapshot %s is damaged and set aside as %s: %s", path, DAMAGED_SUFFIX, error)
        self._disk.rename(path, path + DAMAGED_SUFFIX)
        with self._changing:
            self._ids = [each for each in self._ids if each != snapshot_id]

    def forget_before(self, snapshot_id: SnapshotId) -> list[str]:
        """Put older ones out of use. Returns the files' paths, to be removed later."""
        with self._changing:
            gone = [each for each in self._ids if each < snapshot_id]
            self._ids = [each for each in self._ids if each >= snapshot_id]
        # Also of those that a thread read while they were put out of use.
        for each in list(self._described):
            if each < snapshot_id:
                del self._described[each]
        return [put_aside(self._disk, self.path(each)) for each in gone]
