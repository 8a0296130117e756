"""Files that two directories share, so that a copy of a gigabyte takes no longer than one of a few bytes.

`share` gives a file a second name in another directory (a hard link). Each of the two has to take care that it never
changes the bytes of the other: files that are replaced as a whole, or removed, do so by themselves, and the rest goes
through `OsDiskFile`, which copies first (`copy_for_one_name`). `copy_front` copies the beginning of a file that grows:
where the file system can (`FICLONE`, on Btrfs and XFS), that takes no room and no time either.
"""

import errno
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress

_FICLONE = 0x40049409
"""Of Linux (`linux/fs.h`)."""
_COPY_BYTES = 1 << 20
_NOT_SHARED = frozenset((errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES))
"""Another volume, a file of somebody else, too many names, a file system without such names."""
OWN_SUFFIX = ".own.tmp"
"""Behind the name of a copy that is not whole yet; a start removes what ends so."""


def share(source: str, target: str) -> bool:
    """Give a file that is not appended to a second name; copy it where that is not possible, which False tells.

    Raises OSError.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NOT_SHARED:
            raise
        copy_front(source, target, None)
        return False
    return True


def copy_front(source: str, target: str, size: int | None) -> None:
    """Copy the first `size` bytes of a file, or all, into a new one with the same times. Raises OSError, also where
    the file is shorter.
    """
    read = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        write = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            if not _clone(read, write, size):
                _copy(read, write, size)
            _keep_times(read, write)
        finally:
            os.close(write)
    finally:
        os.close(read)


def clones(source: str, directory: str) -> bool:
    """Tell whether `copy_front` of this file into the directory takes no time, whatever its size. Raises OSError."""
    target = os.path.join(directory, f".clone{OWN_SUFFIX}")
    read = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        write = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            return _clone(read, write, None)
        finally:
            os.close(write)
            os.remove(target)
    finally:
        os.close(read)


def copy_for_one_name(descriptor: int, path: str, size: int | None, sync: Callable[[int], None]) -> int:
    """Put a copy of the file in the place of its name; other names keep the old one. Raises OSError: EIO where the copy
    may be lost by a power cut, and else nothing has changed.

    Returns a descriptor of the copy, for reading and appending. size: of what to copy, None for all. sync: makes what
    a descriptor has durable.
    """
    temporary = path + OWN_SUFFIX
    directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        own = os.open(temporary, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            length = os.fstat(descriptor).st_size
            _copy(descriptor, own, length if size is None else min(size, length))
            _keep_times(descriptor, own)
            sync(own)
            os.replace(temporary, path)
            _sync_name(directory, sync)
        except BaseException:
            os.close(own)
            with suppress(OSError):
                os.remove(temporary)
            raise
    finally:
        os.close(directory)
    return own


def _sync_name(directory: int, sync: Callable[[int], None]) -> None:
    """Raises OSError for a broken disk, whatever was the matter: who goes on with the file would change what the other
    name has.
    """
    try:
        sync(directory)
    except OSError as error:
        raise OSError(errno.EIO, error.strerror) from error


def current_path(descriptor: int, path: str) -> str:
    """Return the path of an open file, which may have got another one since it was opened by `path`. Raises OSError."""
    for each in (path, _path_by_system(descriptor)):
        try:
            if each is not None and os.path.samestat(os.lstat(each), os.fstat(descriptor)):
                return each
        except FileNotFoundError:
            continue
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _path_by_system(descriptor: int) -> str | None:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None


def _clone(read: int, write: int, size: int | None) -> bool:
    try:
        fcntl.ioctl(write, _FICLONE, read)
    except OSError:
        return False  # the file system cannot, or the two are on different volumes; a copy says what else is wrong
    if size is not None:
        _check_reaches(os.fstat(write).st_size, size)
        os.ftruncate(write, size)
    return True


def _copy(read: int, write: int, size: int | None) -> None:
    """Raises OSError where the file ends before `size`."""
    position = 0
    while size is None or position < size:
        data = os.pread(read, _COPY_BYTES if size is None else min(_COPY_BYTES, size - position), position)
        if not data:
            if size is not None:
                _check_reaches(position, size)
            return
        rest = memoryview(data)
        position += len(data)
        while rest:
            rest = rest[os.write(write, rest) :]


def _check_reaches(end: int, size: int) -> None:
    if end < size:
        raise OSError(errno.EIO, f"the file ends at {end}, and not behind {size} bytes")


def _keep_times(read: int, write: int) -> None:
    """Retention goes by them where records have no timestamps."""
    status = os.fstat(read)
    os.utime(write, ns=(status.st_atime_ns, status.st_mtime_ns))
