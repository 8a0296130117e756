"""A disk that fails where a test or a seed wants it to, in front of any other disk.

What a device does that reports errors: a refused operation has no effect, except that a write which the device
fails in may leave a part of itself (not one for want of room, or to a volume that is read-only), and that what a failed
sync was to write may be lost although the next one finds nothing to complain about. The latter is never asked for
(`syncs_after_failure`).

While reads of a file may fail, it has no descriptor: `sendfile` would read past this disk.
"""

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from .disk import Buffer, Disk, DiskFile, DiskLock, DiskSpace, Turn
from .errors import DiskFailed, FileError, file_error

ROOM_ERRORS = frozenset((errno.ENOSPC, errno.EDQUOT))
WITHOUT_EFFECT = ROOM_ERRORS | {errno.EROFS}
"""Errors of writes that leave nothing of themselves."""
SYNCS = frozenset(("sync", "sync_directory", "sync_volume"))
NEED_NO_ROOM = SYNCS | {"remove", "remove_directory"}
CHANGES = SYNCS | {
    "append",
    "create",
    "make_directory",
    "preallocate",
    "remove",
    "remove_directory",
    "rename",
    "replace_file",
    "truncate",
}
"""Operations that leave a trace; the others are open, list, look at, read and space."""


class DiskFault(Protocol):
    """A fault that is asked before each operation; by the thread that is to carry it out."""

    @property
    def number(self) -> int:
        """The number of the error, as in `errno`."""
        ...

    def strikes(self, operation: str, path: str) -> bool:
        """Tell whether the operation fails, and count it."""
        ...

    def may_strike(self, operation: str, path: str) -> bool:
        """Tell whether such an operation may fail now or later, and count nothing."""
        ...


@dataclass(slots=True)
class Fault:
    """A fault of the disk: `times` operations of these kinds on a path with this text fail (None: all of them)."""

    number: int
    operations: frozenset[str] = CHANGES
    path: str = ""
    skip: int = 0
    times: int | None = 1

    def strikes(self, operation: str, path: str) -> bool:
        if not self.may_strike(operation, path):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True

    def may_strike(self, operation: str, path: str) -> bool:
        if operation not in self.operations or self.path not in path or self.times == 0:
            return False
        return self.number not in ROOM_ERRORS or operation not in NEED_NO_ROOM


class FaultyFile:
    def __init__(self, disk: "FaultyDisk", file: DiskFile) -> None:
        self._disk = disk
        self._file = file

    @property
    def path(self) -> str:
        return self._file.path

    def fileno(self) -> int | None:
        return None if self._disk.may_fail("read", self.path) else self._file.fileno()

    def size(self) -> int:
        return self._file.size()

    def read_at(self, position: int, size: int) -> bytes:
        self._disk.attempt("read", self.path)
        return self._file.read_at(position, size)

    def read_cached(self, position: int, size: int) -> bytes | None:
        data = self._file.read_cached(position, size)
        if data is not None:  # else it is read from the device next, and counts then
            self._disk.attempt("read", self.path)
        return data

    def append(self, parts: Sequence[Buffer]) -> None:
        try:
            self._disk.attempt("append", self.path)
        except FileError as failure:
            if failure.error.errno not in WITHOUT_EFFECT:
                data = b"".join(parts)
                self._file.append([data[: self._disk.rng.randint(0, len(data))]])
            raise
        self._file.append(parts)

    def truncate(self, size: int) -> None:
        self._disk.attempt("truncate", self.path)
        self._file.truncate(size)

    def preallocate(self, size: int) -> None:
        self._disk.attempt("preallocate", self.path)
        self._file.preallocate(size)

    def end_of_data(self) -> int:
        return self._file.end_of_data()

    def sync(self) -> None:
        self._disk.attempt("sync", self.path)
        self._file.sync()

    def check_written(self) -> None:
        self._disk.attempt("sync", self.path)
        self._file.check_written()

    def close(self) -> None:
        self._file.close()


class FaultyDisk:
    """A disk with faults.

    faults: those to come, to be set at any time. operations: the number of `CHANGES` that were attempted.
    """

    def __init__(self, disk: Disk, rng: Random, faults: Sequence[DiskFault] = ()) -> None:
        self.rng = rng
        self.faults = faults
        self.operations = 0
        self.syncs_after_failure: list[str] = []
        """Paths that somebody tried to sync once more."""
        self._disk = disk
        self._failed_syncs: set[str] = set()

    def attempt(self, operation: str, path: str) -> None:
        """Count the operation. Raises `FileError` where it is to fail."""
        self.operations += operation in CHANGES
        if operation in SYNCS and path in self._failed_syncs:
            self.syncs_after_failure.append(path)
        for fault in self.faults:
            if fault.strikes(operation, path):
                error = OSError(fault.number, os.strerror(fault.number))
                if operation not in SYNCS:
                    raise file_error(operation, path, error) from error
                self._failed_syncs.add(path)
                raise DiskFailed(operation, path, error) from error

    def may_fail(self, operation: str, path: str) -> bool:
        """Tell whether there is a fault for such an operation."""
        return any(fault.may_strike(operation, path) for fault in self.faults)

    def restart(self) -> None:
        """The device works again, for whoever opens it anew."""
        self.faults = ()
        self._failed_syncs = set()

    def open(self, path: str, *, create: bool = False) -> FaultyFile:
        is_new = create and not self._disk.exists(path)
        self.attempt("create" if is_new else "open", path)
        return FaultyFile(self, self._disk.open(path, create=create))

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)

    def is_directory(self, path: str) -> bool:
        return self._disk.is_directory(path)

    def list_directory(self, path: str) -> list[str]:
        self.attempt("list", path)
        return self._disk.list_directory(path)

    def make_directory(self, path: str) -> None:
        if not self._disk.is_directory(path):
            self.attempt("make_directory", path)
        self._disk.make_directory(path)

    def modified_ms(self, path: str) -> int | None:
        self.attempt("look at", path)
        return self._disk.modified_ms(path)

    def read_file(self, path: str) -> bytes:
        self.attempt("read", path)
        return self._disk.read_file(path)

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.attempt("replace_file", path)
        self._disk.replace_file(path, data, sync=sync)

    def rename(self, source: str, target: str) -> None:
        self.attempt("rename", source)
        self._disk.rename(source, target)

    def remove(self, path: str) -> None:
        if self._disk.exists(path):
            self.attempt("remove", path)
        self._disk.remove(path)

    def remove_directory(self, path: str) -> None:
        if self._disk.exists(path):
            self.attempt("remove_directory", path)
        self._disk.remove_directory(path)

    def sync_directory(self, path: str) -> None:
        self.attempt("sync_directory", path)
        self._disk.sync_directory(path)

    def sync_volume(self, path: str) -> bool:
        self.attempt("sync_volume", path)
        return self._disk.sync_volume(path)

    def boot_id(self) -> str:
        return self._disk.boot_id()

    def space(self, path: str) -> DiskSpace:
        self.attempt("space", path)
        return self._disk.space(path)

    def lock(self, path: str) -> DiskLock:
        return self._disk.lock(path)

    def turn(self) -> Turn:
        return self._disk.turn()
