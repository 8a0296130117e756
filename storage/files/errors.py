"""Errors between a log and its files. A client whose records are refused gets an `ApiError`."""

import errno

_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE))


class StorageError(Exception):
    """A message of one clear line."""


class FileError(StorageError):
    """The operating system did not carry out a file operation: a `DiskFailed` or a `NoRoom`."""

    def __init__(self, operation: str, path: str, error: OSError) -> None:
        super().__init__(f"cannot {operation} {path}: {error.strerror or error}")
        self.operation = operation
        self.path = path
        self.error = error


class DiskFailed(FileError):
    """The disk does not do what it is asked. Whoever owns the log directory takes it offline."""


class NoRoom(FileError):
    """A write without room: the disk is full, a quota or a limit is reached, or the process has no descriptor left.

    Nothing is broken and nothing has changed. The same may be tried again later, and the directory stays online.
    """


def file_error(operation: str, path: str, error: OSError) -> DiskFailed | NoRoom:
    """The kind of failure of an operation that left everything as it was.

    A failed sync is always a `DiskFailed`: what it was to write may be gone, even where the reason was a lack of room,
    and nobody may try it again.
    """
    kind = NoRoom if error.errno in _NO_ROOM else DiskFailed
    return kind(operation, path, error)


class DirectoryLocked(StorageError):
    """Another process works in the log directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the log directory {path} is in use by another process")
        self.path = path


class InconsistentDirectory(StorageError):
    """The log directory is not formatted, or belongs to another node or cluster, or is damaged."""


class CorruptLog(StorageError):
    """A partition's files contradict each other in a way that recovery cannot mend."""


class CorruptIndex(CorruptLog):
    """An index contradicts the batches; it can be built anew from them."""


class OffsetOutOfRange(StorageError):
    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(f"offset {offset} is not between {log_start_offset} and {log_end_offset}")
        self.offset = offset
