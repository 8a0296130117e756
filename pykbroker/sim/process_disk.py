"""A disk as one process sees it: the process may die between any two changes, and does nothing more to the disk then.

Its death is an exception that nobody handles (`ProcessDied`), at the change that it did not get to. Everything that the
process still tries before it notices meets the same exception, also what stands in `finally` blocks. In front of each
operation of a simulated thread, and behind each change, others may go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVarTuple, Unpack

from pykbroker.storage.files.disk import Buffer, Disk, DiskFile, DiskLock, DiskSpace, Turn
from pykbroker.storage.files.faulty_disk import CHANGES
from pykbroker.storage.files.gathered_writes import IOV_MAX

from .interleaving import InterleavedTurn, hand_over, on_the_loop
from .process import ProcessDied

Ts = TypeVarTuple("Ts")


class ProcessDisk:
    """The disk of one process. on_death: is called when the process dies by itself, at change number `dies_at`."""

    def __init__(self, disk: Disk, on_death: Callable[[], None]) -> None:
        self.disk = disk
        self.is_dead = False
        self.changes = 0
        self.dies_at: int | None = None
        self._on_death = on_death
        self._wanted: Callable[[str, bytes], bool] | None = None
        self._changes_later = 0

    def die_after_append(self, wanted: Callable[[str, bytes], bool], *, changes: int) -> None:
        """Let the process die so many changes behind the next append that `is_wanted` accepts, by path and bytes."""
        self._wanted = wanted
        self._changes_later = changes

    def attempt(self, operation: str) -> None:
        """Raises ProcessDied instead of the operation."""
        self.hand_over()
        if operation in CHANGES:
            if self.changes == self.dies_at:
                on_the_loop(self._on_death)
                raise ProcessDied(operation)
            self.changes += 1

    def change(self, operation: str, function: Callable[[Unpack[Ts]], object], *args: *Ts) -> None:
        self.attempt(operation)
        function(*args)
        self.hand_over()

    def hand_over(self, *, waits: bool = False) -> None:
        """Let others go on, where this is a simulated thread. Raises ProcessDied where the process dies meanwhile."""
        if not self.is_dead:
            hand_over(waits=waits)
        if self.is_dead:
            raise ProcessDied

    def appended(self, path: str, parts: Sequence[Buffer]) -> None:
        if self._wanted is not None and self._wanted(path, b"".join(parts)):
            self._wanted = None
            self.dies_at = self.changes + self._changes_later

    def open(self, path: str, *, create: bool = False) -> ProcessFile:
        self.attempt("create" if create else "open")
        return ProcessFile(self, self.disk.open(path, create=create))

    def exists(self, path: str) -> bool:
        self.attempt("look at")
        return self.disk.exists(path)

    def is_directory(self, path: str) -> bool:
        self.attempt("look at")
        return self.disk.is_directory(path)

    def list_directory(self, path: str) -> list[str]:
        self.attempt("list")
        return self.disk.list_directory(path)

    def make_directory(self, path: str) -> None:
        self.change("make_directory", self.disk.make_directory, path)

    def modified_ms(self, path: str) -> int | None:
        self.attempt("look at")
        return self.disk.modified_ms(path)

    def read_file(self, path: str) -> bytes:
        self.attempt("read")
        return self.disk.read_file(path)

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.change("replace_file", lambda: self.disk.replace_file(path, data, sync=sync))

    def rename(self, source: str, target: str) -> None:
        self.change("rename", self.disk.rename, source, target)

    def remove(self, path: str) -> None:
        self.change("remove", self.disk.remove, path)

    def remove_directory(self, path: str) -> None:
        self.change("remove_directory", self.disk.remove_directory, path)

    def sync_directory(self, path: str) -> None:
        self.change("sync_directory", self.disk.sync_directory, path)

    def sync_volume(self, path: str) -> bool:
        self.attempt("sync_volume")
        return self.disk.sync_volume(path)

    def boot_id(self) -> str:
        self.attempt("read")
        return self.disk.boot_id()

    def space(self, path: str) -> DiskSpace:
        self.attempt("space")
        return self.disk.space(path)

    def lock(self, path: str) -> DiskLock:
        self.attempt("create")
        return ProcessLock(self, self.disk.lock(path))

    def turn(self) -> Turn:
        return InterleavedTurn(self.hand_over)


class ProcessLock:
    def __init__(self, process: ProcessDisk, lock: DiskLock) -> None:
        self._process = process
        self._lock = lock

    def release(self) -> None:
        if not self._process.is_dead:
            self._lock.release()


class ProcessFile:
    def __init__(self, process: ProcessDisk, file: DiskFile) -> None:
        self._process = process
        self._file = file

    @property
    def path(self) -> str:
        return self._file.path

    def fileno(self) -> int | None:
        return self._file.fileno()

    def size(self) -> int:
        self._process.attempt("look at")
        return self._file.size()

    def read_at(self, position: int, size: int) -> bytes:
        self._process.attempt("read")
        return self._file.read_at(position, size)

    def read_cached(self, position: int, size: int) -> bytes | None:
        self._process.attempt("read")
        return self._file.read_cached(position, size)

    def append(self, parts: Sequence[Buffer]) -> None:
        """Append; what takes several system calls may be there in part when the process dies."""
        for number in range(0, len(parts) or 1, IOV_MAX):
            was_dead = self._process.is_dead
            try:
                self._process.attempt("append")
            except ProcessDied:
                if number and not was_dead:
                    self._file.append(parts[:number])
                raise
        self._file.append(parts)
        self._process.appended(self.path, parts)
        self._process.hand_over()

    def preallocate(self, size: int) -> None:
        self._process.change("preallocate", self._file.preallocate, size)

    def end_of_data(self) -> int:
        self._process.attempt("look at")
        return self._file.end_of_data()

    def truncate(self, size: int) -> None:
        self._process.change("truncate", self._file.truncate, size)

    def sync(self) -> None:
        self._process.change("sync", self._file.sync)

    def check_written(self) -> None:
        self._process.change("sync", self._file.check_written)

    def close(self) -> None:
        if not self._process.is_dead:
            self._file.close()
