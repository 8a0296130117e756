"""Files as a seam: everything that storage asks of an operating system, and the real one.

`pykbroker.sim.disk.SimulatedDisk` is the other implementation; both pass the same contract test. `FaultyDisk` and the
simulation's `ProcessDisk` stand around a disk, one to refuse calls, one to let a process die between two of them. Paths
are strings with slashes. Every `OSError` leaves as `DiskFailed`, or as `NoRoom` where it may be tried again. What was
written is durable after `sync`, a new or renamed name after `sync_directory` of the directory that holds it.

A file of `OsDisk` may have a second name, which another broker or a copy has (`shared_files`). Whoever changes it in
place gets bytes of its own first; the other name keeps what it had.
"""

import ctypes
import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import ClassVar, NamedTuple, Protocol

from .errors import DirectoryLocked, DiskFailed, file_error
from .gathered_writes import IOV_MAX, Buffer, write_all
from .shared_files import copy_for_one_name, current_path

__all__ = ["Buffer", "Disk", "DiskFile", "DiskLock", "DiskSpace", "OsDisk", "OsDiskFile", "OsDiskLock", "Turn"]

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_READ_BYTES = 1 << 16

_libc = ctypes.CDLL(None, use_errno=True)
_syncfs = getattr(_libc, "syncfs", None)
_sync_file_range = getattr(_libc, "sync_file_range", None)
"""Of Linux; Python has no names for them."""
if _sync_file_range is not None:
    _sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
_WAIT_BEFORE = 1

_RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)


class DiskSpace(NamedTuple):
    """The space of a volume. usable_bytes: what this process may still write."""

    total_bytes: int
    usable_bytes: int


class DiskFile(Protocol):
    """One open file that grows at its end."""

    @property
    def path(self) -> str: ...

    def fileno(self) -> int | None:
        """The descriptor of a real file, for `sendfile`; None where there is none."""
        ...

    def size(self) -> int:
        """Return the length of the file in bytes."""
        ...

    def read_at(self, position: int, size: int) -> bytes:
        """Return `size` bytes from `position` on; fewer only where the file ends. Raises `DiskFailed`."""
        ...

    def read_cached(self, position: int, size: int) -> bytes | None:
        """Read as `read_at` does, but return None where that would wait for a disk. Where nobody can tell it waits."""
        ...

    def append(self, parts: Sequence[Buffer]) -> None:
        """Write the parts behind the end, however many they are. Where that fails, the file is as long as before. Where
        the process dies meanwhile a part of it may be there: what is more than one system call takes comes in several.
        """
        ...

    def truncate(self, size: int) -> None:
        """Cut the file off, so that it has `size` bytes."""
        ...

    def preallocate(self, size: int) -> None:
        """Make an empty file so long, in zeros. While it is open, appends still go behind what
        was appended, and `size` is what was appended, until `truncate` says where the file ends.
        """
        ...

    def end_of_data(self) -> int:
        """Return the end of data: behind it are only zeros that were never written; before it may be some, too."""
        ...

    def sync(self) -> None:
        """Bytes and size are durable when it returns."""
        ...

    def check_written(self) -> None:
        """Raise `DiskFailed` where a write did not come to the disk, behind a `Disk.sync_volume`.

        It makes nothing durable, and so costs nothing: each sync sends the device a flush, even where nothing is left
        to be written.
        """
        ...

    def close(self) -> None:
        """Close the file. The call may be repeated."""
        ...


class DiskLock(Protocol):
    def release(self) -> None: ...


class Turn(Protocol):
    """A turn is for one thread at a time: whoever enters waits until nobody else has it."""

    def __enter__(self) -> bool: ...
    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def locked(self) -> bool:
        """Tell whether somebody has the turn."""
        ...


class Disk(Protocol):
    def open(self, path: str, *, create: bool = False) -> DiskFile:
        """Open a file for reading and appending; the file must be there unless `create` says otherwise."""
        ...

    def exists(self, path: str) -> bool: ...
    def is_directory(self, path: str) -> bool: ...

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        ...

    def make_directory(self, path: str) -> None:
        """Make a directory with its parents; no error where it is there already."""
        ...

    def modified_ms(self, path: str) -> int | None:
        """Return when a file was written to last, by the wall clock; None on a disk that keeps no times."""
        ...

    def read_file(self, path: str) -> bytes:
        """Return the whole of a file. Raises `DiskFailed`."""
        ...

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """The file has either its old or its new bytes, whenever a crash comes; durable at return with `sync`.

        Without `sync` a crash may leave the file empty: for what can be found out again.
        """
        ...

    def rename(self, source: str, target: str) -> None:
        """Replace a target file."""
        ...

    def remove(self, path: str) -> None:
        """Remove one file; no error where there is none."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it; no error where there is none."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""
        ...

    def sync_volume(self, path: str) -> bool:
        """All files and names on the volume of the directory, whoever wrote them, are durable as they were at the call.

        False where the system has no such thing: then nothing is. It takes the place of thousands of syncs. A write
        that failed earlier is told for certain only by `DiskFile.sync` of the file that it was written through.
        """
        ...

    def boot_id(self) -> str:
        """Another one whenever the machine starts, when everything may be gone that was not synced; "" if not known."""
        ...

    def space(self, path: str) -> "DiskSpace":
        """Return the space of the volume that holds the directory."""
        ...

    def lock(self, path: str) -> DiskLock:
        """Hold the lock file until `release`; raises `DirectoryLocked` where somebody else does."""
        ...

    def turn(self) -> Turn:
        """Return a new turn for the threads that work on the same files."""
        ...


def _lock_at_once(lock: Callable[[int, int], object], descriptor: int, directory: str) -> None:
    """Take a lock, or raise DirectoryLocked. A file that cannot be opened is locked by nobody, and raised before."""
    try:
        lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise DirectoryLocked(directory) from error
        raise


class OsDiskFile:
    __slots__ = ("_appended", "_descriptor", "_may_be_shared", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._may_be_shared = os.fstat(descriptor).st_nlink > 1
        """It had another name when it was opened. Nobody gives one to a file that is appended to."""
        self._appended: int | None = None
        """Where the next bytes of a preallocated file go; in others they go to its end."""

    def __del__(self) -> None:
        self.close()

    def fileno(self) -> int | None:
        return self._descriptor

    def size(self) -> int:
        if self._appended is not None:
            return self._appended
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            raise file_error("look at", self.path, error) from error

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
            raise file_error("read", self.path, error) from error

    def read_cached(self, position: int, size: int) -> bytes | None:
        if _RWF_NOWAIT:
            data = bytearray(size)
            try:
                count = os.preadv(self._descriptor, [data], position, _RWF_NOWAIT)
            except BlockingIOError:
                return None
            except OSError:
                return self.read_at(position, size)  # the file system does not know the flag, or there is an error
            if count == size:
                return bytes(data)
            if position + count < self.size():
                return None
        return self.read_at(position, size)

    def append(self, parts: Sequence[Buffer]) -> None:
        if self._may_be_shared:
            self._own()
        if self._appended is not None:
            self._append_at(self._appended, parts)
            return
        size = sum(map(len, parts))
        written = 0
        if len(parts) <= IOV_MAX:
            try:
                written = os.writev(self._descriptor, parts)
            except OSError as error:
                raise file_error("write", self.path, error) from error
        if written != size:
            self._append_rest(parts, written)

    def _append_rest(self, parts: Sequence[Buffer], written: int) -> None:
        """A write may be cut short, or have more parts than one call takes."""

        def write(group: Sequence[Buffer], done: int) -> int:
            nonlocal written
            written = done
            return os.writev(self._descriptor, group)

        try:
            write_all(parts, write, written)
        except OSError as error:
            self._take_back(written)
            raise file_error("write", self.path, error) from error

    def _take_back(self, written: int) -> None:
        if not written:
            return
        try:
            os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
        except OSError as error:
            raise DiskFailed("take back a part of a write to", self.path, error) from error

    def _append_at(self, position: int, parts: Sequence[Buffer]) -> None:
        """Append into the zeros of a preallocated file."""

        def write(group: Sequence[Buffer], done: int) -> int:
            return os.pwritev(self._descriptor, group, position + done)

        try:
            length = os.fstat(self._descriptor).st_size
            try:
                self._appended = position + write_all(parts, write)
            except OSError:
                # What was written becomes zeros again.
                os.ftruncate(self._descriptor, position)
                os.ftruncate(self._descriptor, length)
                raise
        except OSError as error:
            raise file_error("write", self.path, error) from error

    def truncate(self, size: int) -> None:
        self._own(size)
        try:
            os.ftruncate(self._descriptor, size)
            if self._appended is not None:
                self._appended = None
                _set_append_mode(self._descriptor, True)
        except OSError as error:
            raise file_error("truncate", self.path, error) from error

    def _own(self, size: int | None = None) -> None:
        """Give the name bytes of its own where another name has the same: `size` of them, or all. Raises `FileError`;
        then nothing has changed. The descriptor stays, whoever has it.
        """
        try:
            if os.fstat(self._descriptor).st_nlink > 1:
                path = current_path(self._descriptor, self.path)
                own = copy_for_one_name(self._descriptor, path, size, self._sync)
                try:
                    os.dup2(own, self._descriptor, inheritable=False)
                finally:
                    os.close(own)
        except OSError as error:
            raise file_error("copy", self.path, error) from error
        self._may_be_shared = False

    @staticmethod
    def _sync(descriptor: int) -> None:
        os.fsync(descriptor)

    def preallocate(self, size: int) -> None:
        """Preallocate as Kafka does: the length is set, blocks come with the data."""
        try:
            assert not os.fstat(self._descriptor).st_size, "what is there would be written over"
            os.ftruncate(self._descriptor, size)
            _set_append_mode(self._descriptor, False)
        except OSError as error:
            raise file_error("preallocate", self.path, error) from error
        self._appended = 0

    def end_of_data(self) -> int:
        end = 0
        try:
            while True:
                end = os.lseek(self._descriptor, os.lseek(self._descriptor, end, os.SEEK_DATA), os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:  # which says that no data follows
                raise file_error("look at", self.path, error) from error
        return end

    def sync(self) -> None:
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise DiskFailed("sync", self.path, error) from error

    def check_written(self) -> None:
        if _sync_file_range is None:
            self.sync()
        elif _sync_file_range(self._descriptor, 0, 0, _WAIT_BEFORE):
            number = ctypes.get_errno()
            raise DiskFailed("sync", self.path, OSError(number, os.strerror(number)))

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _set_append_mode(descriptor: int, on: bool) -> None:
    """Set the append mode, in which Linux writes to the file's end whatever position is given."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_APPEND if on else flags & ~os.O_APPEND)


class OsDiskLock:
    def __init__(self, descriptors: list[int]) -> None:
        self._descriptors = descriptors

    def release(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


class OsDisk:
    """The file system of this machine."""

    _file_type: ClassVar[type[OsDiskFile]] = OsDiskFile

    def open(self, path: str, *, create: bool = False) -> OsDiskFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            return self._file_type(path, os.open(path, flags, 0o644))
        except OSError as error:
            raise file_error("open", path, error) from error

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_directory(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            raise file_error("list", path, error) from error

    def make_directory(self, path: str) -> None:
        try:
            os.makedirs(path, exist_ok=True)
        except FileExistsError:
            raise file_error("create", path, NotADirectoryError(errno.ENOTDIR, "a file has that name")) from None
        except OSError as error:
            raise file_error("create", path, error) from error

    def modified_ms(self, path: str) -> int | None:
        try:
            return os.stat(path).st_mtime_ns // 1_000_000
        except OSError as error:
            raise file_error("look at", path, error) from error

    def read_file(self, path: str) -> bytes:
        try:
            # A node opens thousands of small files at its start: Python's file objects cost more than reading does.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                parts = [os.read(descriptor, _READ_BYTES)]
                while len(parts[-1]) == _READ_BYTES:
                    parts.append(os.read(descriptor, _READ_BYTES))
                return b"".join(parts)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise file_error("read", path, error) from error

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        try:
            # A stop writes one for each of thousands of logs: Python's file objects cost more than writing does.
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                if sync:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, path)
        except OSError as error:
            # A later attempt begins with a file of its own, whatever became of this one, its sync included.
            with suppress(OSError):
                os.remove(temporary)
            raise file_error("write", path, error) from error
        if sync:
            self.sync_directory(os.path.dirname(path))

    def rename(self, source: str, target: str) -> None:
        try:
            os.replace(source, target)
        except OSError as error:
            raise file_error("rename", source, error) from error

    def remove(self, path: str) -> None:
        try:
            os.remove(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise file_error("remove", path, error) from error

    def remove_directory(self, path: str) -> None:
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise file_error("remove", path, error) from error

    def sync_directory(self, path: str) -> None:
        try:
            descriptor = os.open(path or ".", os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise DiskFailed("sync", path, error) from error

    def sync_volume(self, path: str) -> bool:
        if _syncfs is None:
            return False
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if _syncfs(descriptor):
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number))
            finally:
                os.close(descriptor)
        except OSError as error:
            raise DiskFailed("sync the volume of", path, error) from error
        return True

    def boot_id(self) -> str:
        try:
            with open(_BOOT_ID, encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return ""

    def space(self, path: str) -> DiskSpace:
        try:
            volume = os.statvfs(path)
        except OSError as error:
            raise file_error("look at", path, error) from error
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
            _lock_at_once(fcntl.flock, descriptors[0], directory)
            descriptors.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
            _lock_at_once(fcntl.lockf, descriptors[1], directory)
        except (OSError, DirectoryLocked) as error:
            for descriptor in descriptors:
                os.close(descriptor)
            if isinstance(error, DirectoryLocked):
                raise
            raise file_error("lock", path, error) from error
        return OsDiskLock(descriptors)

    def turn(self) -> Turn:
        return Lock()
