"""A disk that knows what was flushed, in front of any other, also of one that flushes nothing: so that a power cut may
take the rest.

A power cut takes the bytes that were appended since the last sync of their file. Names stay as they are, as on a file
system that has just written its journal; what was replaced without a sync is empty. What another process writes, as one
that cleans logs does, is taken for flushed.
"""

from __future__ import annotations

import errno
import os
import posixpath
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from threading import Lock
from typing import Any
from uuid import UUID

from pykbroker.storage.files.disk import Buffer, Disk, DiskFile, DiskLock, DiskSpace, Turn
from pykbroker.storage.files.errors import DiskFailed


class Extent:
    """The extent of a file: how much of it was appended, and how much of that was flushed.

    path: None where there is no such file any more. preallocated_bytes: its length, where that is zeros behind the end.
    mark: what the one who watches the disk has noted of the file.
    """

    __slots__ = ("__weakref__", "flushed_bytes", "mark", "path", "preallocated_bytes", "size")

    def __init__(self, path: str, size: int) -> None:
        self.path: str | None = path
        self.size = self.flushed_bytes = size
        self.preallocated_bytes = 0
        self.mark: Any = None


class FlushedFile:
    """An open file of the disk, until a power cut."""

    def __init__(self, disk: FlushedDisk, file: DiskFile, extent: Extent) -> None:
        self._disk = disk
        self._file = file
        self._extent = extent
        self._power_cuts = disk.power_cuts

    @property
    def path(self) -> str:
        return self._file.path

    def fileno(self) -> int | None:
        return self._file.fileno()

    def size(self) -> int:
        return self._file.size()

    def read_at(self, position: int, size: int) -> bytes:
        return self._file.read_at(position, size)

    def read_cached(self, position: int, size: int) -> bytes | None:
        return self._file.read_cached(position, size)

    def append(self, parts: Sequence[Buffer]) -> None:
        disk, extent = self._disk, self._extent
        with disk.guard:
            self._check_power("write")
            try:
                self._file.append(parts)
            except BaseException:
                extent.size = self._file.size()
                disk.note(extent)
                raise
            extent.size += sum(map(len, parts))
            disk.note(extent)
            if disk.touched is not None:
                disk.touched.add(extent)

    def truncate(self, size: int) -> None:
        with self._changing("truncate"):
            self._file.truncate(size)
            self._extent.flushed_bytes = min(self._extent.flushed_bytes, size)
            self._extent.preallocated_bytes = 0

    def preallocate(self, size: int) -> None:
        with self._changing("preallocate"):
            self._file.preallocate(size)
            self._extent.preallocated_bytes = size

    @contextmanager
    def _changing(self, operation: str) -> Iterator[None]:
        with self._disk.guard:
            self._check_power(operation)
            try:
                yield
            finally:
                self._extent.size = self._file.size()
                self._disk.note(self._extent)
                self._disk.touch(self._extent)

    def _check_power(self, operation: str) -> None:
        if self._power_cuts != self._disk.power_cuts:
            raise DiskFailed(operation, self.path, OSError(errno.EIO, "the power was cut"))

    def end_of_data(self) -> int:
        return self._file.end_of_data()

    def sync(self) -> None:
        self._check_power("sync")
        size = self._file.size()
        self._file.sync()
        self._disk.flushed(self._extent, size, self._power_cuts)

    def check_written(self) -> None:
        self._file.check_written()

    def close(self) -> None:
        self._file.close()


class FlushedDisk:
    """The disk of one node, through all its starts. guard: is held while a file changes."""

    def __init__(self, inner: Disk) -> None:
        self.power_cuts = 0
        self.guard = Lock()
        self.inner = inner
        self._extents: weakref.WeakValueDictionary[str, Extent] = weakref.WeakValueDictionary()
        self._unflushed: dict[Extent, None] = {}
        self.touched: set[Extent | str] | None = None
        """Files that were written to, and the names that were changed, while somebody watches."""

    def cut_power(self) -> int:
        """Take what was not flushed, and return how many bytes that was. Whoever has a file open cannot write to it any
        more. For a thread. Raises `FileError`.
        """
        with self.guard:
            self.power_cuts += 1
            lost, self._unflushed = list(self._unflushed), {}
            self._extents = weakref.WeakValueDictionary()
        return sum(self._lose(extent) for extent in lost)

    def _lose(self, extent: Extent) -> int:
        if extent.path is None or not self.inner.exists(extent.path):
            return 0
        file = self.inner.open(extent.path)
        try:
            file.truncate(extent.flushed_bytes)
            if extent.preallocated_bytes > extent.flushed_bytes:
                file.truncate(extent.preallocated_bytes)
        finally:
            file.close()
        return max(extent.size - extent.flushed_bytes, 0)

    @property
    def unflushed_bytes(self) -> int:
        """Return how many bytes a power cut would take now."""
        with self.guard:
            return sum(max(extent.size - extent.flushed_bytes, 0) for extent in self._unflushed)

    # Who watches

    def watch(self) -> None:
        """Keep in mind from now on what is touched."""
        if self.touched is None:
            self.touched = set()

    def take_touched(self) -> set[Extent | str]:
        """Return what was touched since the last call: files that were written to, and names of files and directories
        that came or went, old and new.
        """
        with self.guard:
            touched, self.touched = self.touched or set(), set()
        return touched

    def touch(self, what: Extent | str) -> None:
        """Note that a file or a name was changed. The caller holds `guard`."""
        if self.touched is not None:
            self.touched.add(what)

    # What files tell

    def note(self, extent: Extent) -> None:
        """Keep in mind how far the file is flushed. The caller holds `guard`."""
        if extent.path is not None and extent.size > extent.flushed_bytes:
            self._unflushed[extent] = None
        else:
            self._unflushed.pop(extent, None)

    def flushed(self, extent: Extent, size: int, power_cuts: int) -> None:
        """Note that the file is flushed up to a size; it may have been truncated meanwhile, or the power been cut."""
        with self.guard:
            if power_cuts != self.power_cuts:
                return
            extent.flushed_bytes = max(extent.flushed_bytes, min(size, extent.size))
            self.note(extent)

    # Files and names

    def open(self, path: str, *, create: bool = False) -> FlushedFile:
        file = self.inner.open(path, create=create)
        with self.guard:
            extent = self._extents.get(path)
            if extent is None:
                extent = self._extents[path] = Extent(path, file.size())
        return FlushedFile(self, file, extent)

    def exists(self, path: str) -> bool:
        return self.inner.exists(path)

    def is_directory(self, path: str) -> bool:
        return self.inner.is_directory(path)

    def list_directory(self, path: str) -> list[str]:
        return self.inner.list_directory(path)

    def make_directory(self, path: str) -> None:
        self.inner.make_directory(path)
        with self.guard:
            self.touch(path)

    def modified_ms(self, path: str) -> int | None:
        return self.inner.modified_ms(path)

    def read_file(self, path: str) -> bytes:
        return self.inner.read_file(path)

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.inner.replace_file(path, data, sync=sync)
        with self.guard:
            self._forget(path)
            self.touch(path)
            if not sync:
                extent = self._extents[path] = Extent(path, len(data))
                extent.flushed_bytes = 0
                self.note(extent)

    def rename(self, source: str, target: str) -> None:
        self.inner.rename(source, target)
        with self.guard:
            self._forget(target)
            self.touch(source)
            self.touch(target)
            moved = [source] if source in self._extents else self._below(source)
            for path in moved:
                extent = self._extents.pop(path, None)
                if extent is not None:
                    extent.path = target + path[len(source) :]
                    self._extents[extent.path] = extent

    def remove(self, path: str) -> None:
        self.inner.remove(path)
        with self.guard:
            self._forget(path)
            self.touch(path)

    def remove_directory(self, path: str) -> None:
        self.inner.remove_directory(path)
        with self.guard:
            self.touch(path)
            for each in self._below(path):
                self._forget(each)

    def _below(self, directory: str) -> list[str]:
        return [path for path in self._extents if path.startswith(directory + "/")]

    def _forget(self, path: str) -> None:
        extent = self._extents.pop(path, None)
        if extent is not None:
            extent.path = None
            self._unflushed.pop(extent, None)

    # Syncs

    def sync_directory(self, path: str) -> None:
        self.inner.sync_directory(path)

    def sync_volume(self, path: str) -> bool:
        with self.guard:
            power_cuts, sizes = self.power_cuts, [(extent, extent.size) for extent in self._unflushed]
        if not self.inner.sync_volume(path):
            return False
        device = _device(path)
        for extent, size in sizes:
            if extent.path is not None and _device(posixpath.dirname(extent.path)) == device:
                self.flushed(extent, size, power_cuts)
        return True

    def boot_id(self) -> str:
        """Return another one behind each power cut."""
        boot_id = self.inner.boot_id()
        if not self.power_cuts:
            return boot_id
        return str(UUID(bytes=sha256(f"{boot_id} {self.power_cuts}".encode()).digest()[:16]))

    def space(self, path: str) -> DiskSpace:
        return self.inner.space(path)

    def lock(self, path: str) -> DiskLock:
        return self.inner.lock(path)

    def turn(self) -> Turn:
        return self.inner.turn()


def _device(directory: str) -> int | None:
    with suppress(OSError):
        return os.stat(directory).st_dev
    return None
