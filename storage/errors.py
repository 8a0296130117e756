"""What can go wrong between a log and its files. `RecordsRejected` stands beside the rules, in `validation`."""


class StorageError(Exception):
    """A message of one clear line."""


class DiskFailed(StorageError):
    """The operating system refused a file operation. Whoever owns the log directory takes it offline."""

    def __init__(self, operation: str, path: str, error: OSError) -> None:
        super().__init__(f"cannot {operation} {path}: {error.strerror or error}")
        self.operation = operation
        self.path = path
        self.error = error


class DirectoryLocked(StorageError):
    """Another process works in the log directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the log directory {path} is in use by another process")
        self.path = path


class InconsistentDirectory(StorageError):
    """The log directory is not formatted, or belongs to another node or cluster, or is damaged."""


class CorruptLog(StorageError):
    """A partition's files contradict each other in a way that recovery cannot mend."""


class OffsetOutOfRange(StorageError):
    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(f"offset {offset} is not between {log_start_offset} and {log_end_offset}")
        self.offset = offset
