"""The real disk for commands that only look: no call writes, and files may belong to somebody else."""

import errno
import fcntl
import os

from .disk import OsDisk, OsDiskFile, OsDiskLock
from .errors import DirectoryLocked, DiskFailed, FileError


class ReadOnlyDisk(OsDisk):
    """The real disk, of which every call that would write raises `DiskFailed`."""

    def open(self, path: str, *, create: bool = False) -> OsDiskFile:
        if create:
            raise _refused("create", path)
        try:
            return OsDiskFile(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            raise DiskFailed("open", path, error) from error

    def lock(self, path: str) -> OsDiskLock:
        """Lock the directory alone where there is no lock file, or none may be opened for writing."""
        if os.path.exists(path):
            try:
                return super().lock(path)
            except FileError as error:
                if error.error.errno != errno.EROFS:
                    raise
        return lock_directory(os.path.dirname(path) or ".")

    def make_directory(self, path: str) -> None:
        raise _refused("create", path)

    def replace_file(self, path: str, data: bytes, *, sync: bool = True) -> None:
        raise _refused("write", path)

    def rename(self, source: str, target: str) -> None:
        raise _refused("rename", source)

    def remove(self, path: str) -> None:
        raise _refused("remove", path)

    def remove_directory(self, path: str) -> None:
        raise _refused("remove", path)


def lock_directory(path: str) -> OsDiskLock:
    """Raises `DirectoryLocked`, `FileError`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise DiskFailed("lock", path, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno == errno.EAGAIN:
            raise DirectoryLocked(path) from error
        raise DiskFailed("lock", path, error) from error
    return OsDiskLock([descriptor])


def _refused(operation: str, path: str) -> DiskFailed:
    return DiskFailed(operation, path, OSError(errno.EROFS, os.strerror(errno.EROFS)))
