"""Files as a seam: everything that storage asks of an operating system, and the real one.

`pykbroker.sim.disk.SimulatedDisk` is the other implementation; both pass the same contract test. Paths are strings
with slashes. Every `OSError` leaves as `DiskFailed`. What was written is durable after `sync`, a new or renamed name
after `sync_directory` of the directory that holds it.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from .errors import DirectoryLocked, DiskFailed

Buffer: TypeAlias = bytes | bytearray | memoryview


class DiskSpace(NamedTuple):
    """usable_bytes: what this process may still write."""

    total_bytes: int
    usable_bytes: int


class DiskFile(Protocol):
    """One open file that grows at its end."""

    @property
    def path(self) -> str: ...

    def fileno(self) -> int | None:
        """The descriptor of a real file, for `sendfile`; None where there is none."""
        ...

    def size(self) -> int: ...

    def read_at(self, position: int, size: int) -> bytes:
        """Fewer bytes than asked for only where the file ends."""
        ...

    def append(self, parts: Sequence[Buffer]) -> None:
        """Write the parts behind the end. Where that fails, the file is as long as before."""
        ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Bytes and size are durable when it returns."""
        ...

    def close(self) -> None:
        """May be called again."""
        ...


class DiskLock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> DiskFile:
        """For reading and appending; the file must be there unless `create` says otherwise."""
        ...

    def exists(self, path: str) -> bool: ...
    def is_directory(self, path: str) -> bool: ...

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        ...

    def make_directory(self, path: str) -> None:
        """With its parents; no error where it is there already."""
        ...

    def read_file(self, path: str) -> bytes: ...

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """The file has either its old or its new bytes, whenever a crash comes; durable at return with `sync`.

        Without `sync` a crash may leave the file empty: for what can be found out again.
        """
        ...

    def rename(self, source: str, target: str) -> None:
        """Replaces a target file."""
        ...

    def remove(self, path: str) -> None:
        """One file; no error where there is none."""
        ...

    def remove_directory(self, path: str) -> None:
        """With everything in it; no error where there is none."""
        ...

    def sync_directory(self, path: str) -> None: ...

    def space(self, path: str) -> "DiskSpace":
        """Of the volume that holds the directory."""
        ...

    def lock(self, path: str) -> DiskLock:
        """Hold the lock file until `release`; raises `DirectoryLocked` where somebody else does."""
        ...


class OsDiskFile:
    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def __del__(self) -> None:
        self.close()

    def fileno(self) -> int | None:
        return self._descriptor

    def size(self) -> int:
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            raise DiskFailed("look at", self.path, error) from error

    def read_at(self, position: int, size: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, position)
            if len(data) == size or not data:
                return data
            parts = [data]
            missing = size - len(data)
            while missing and (data := os.pread(self._descriptor, missing, position + size - missing)):
                parts.append(data)
                missing -= len(data)
            return b"".join(parts)
        except OSError as error:
            raise DiskFailed("read", self.path, error) from error

    def append(self, parts: Sequence[Buffer]) -> None:
        size = sum(map(len, parts))
        try:
            written = os.writev(self._descriptor, parts)
        except OSError as error:
            raise DiskFailed("write", self.path, error) from error
        if written != size:
            self._append_rest(parts, written, size)

    def _append_rest(self, parts: Sequence[Buffer], written: int, size: int) -> None:
        """A write may be cut short: by a full disk, or by more parts than one call takes."""
        rest = memoryview(b"".join(parts))[written:]
        try:
            while rest:
                count = os.write(self._descriptor, rest)
                written += count
                rest = rest[count:]
        except OSError as error:
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
            raise DiskFailed("write", self.path, error) from error
        assert written == size

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise DiskFailed("truncate", self.path, error) from error

    def sync(self) -> None:
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise DiskFailed("sync", self.path, error) from error

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class OsDiskLock:
    def __init__(self, descriptors: list[int]) -> None:
        self._descriptors = descriptors

    def release(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


class OsDisk:
    """The file system of this machine."""

    def open(self, path: str, *, create: bool = False) -> OsDiskFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            return OsDiskFile(path, os.open(path, flags, 0o644))
        except OSError as error:
            raise DiskFailed("open", path, error) from error

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_directory(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            raise DiskFailed("list", path, error) from error

    def make_directory(self, path: str) -> None:
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise DiskFailed("create", path, error) from error

    def read_file(self, path: str) -> bytes:
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError as error:
            raise DiskFailed("read", path, error) from error

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        try:
            with open(temporary, "wb", buffering=0) as file:
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
                if sync:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError as error:
            raise DiskFailed("write", path, error) from error
        if sync:
            self.sync_directory(os.path.dirname(path))

    def rename(self, source: str, target: str) -> None:
        try:
            os.replace(source, target)
        except OSError as error:
            raise DiskFailed("rename", source, error) from error

    def remove(self, path: str) -> None:
        try:
            os.remove(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise DiskFailed("remove", path, error) from error

    def remove_directory(self, path: str) -> None:
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise DiskFailed("remove", path, error) from error

    def sync_directory(self, path: str) -> None:
        try:
            descriptor = os.open(path or ".", os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise DiskFailed("sync", path, error) from error

    def space(self, path: str) -> DiskSpace:
        try:
            volume = os.statvfs(path)
        except OSError as error:
            raise DiskFailed("look at", path, error) from error
        return DiskSpace(volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize)

    def lock(self, path: str) -> OsDiskLock:
        """Two locks: the one that Java's `FileLock` takes, so that a running Apache Kafka is kept out as well, and one
        of the directory, because the former belongs to the process and two nodes may run in one.
        """
        directory = os.path.dirname(path) or "."
        descriptors: list[int] = []
        try:
            # The directory first: closing any descriptor of the lock file would give up the process's lock on it.
            descriptors.append(os.open(directory, os.O_RDONLY | os.O_CLOEXEC))
            fcntl.flock(descriptors[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
            descriptors.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
            fcntl.lockf(descriptors[1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            for descriptor in descriptors:
                os.close(descriptor)
            if error.errno in (errno.EAGAIN, errno.EACCES) and descriptors:
                raise DirectoryLocked(directory) from error
            raise DiskFailed("lock", path, error) from error
        return OsDiskLock(descriptors)
