"""The reads that never wait for the disk: what is not in memory is named instead, for a thread to bring it there.

The event loop looks up where a batch begins; a page of an old segment or of its index that has to come from a busy disk
would stop everybody meanwhile.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from .disk import DiskFile


class Readable(Protocol):
    @property
    def path(self) -> str: ...

    def read_at(self, position: int, size: int) -> bytes: ...


class WouldWait(Exception):
    """`wait` reads what is missing, and blocks meanwhile; then it may be asked for again."""

    def __init__(self, wait: Callable[[], object]) -> None:
        super().__init__("not in memory")
        self.wait = wait


class CachedFile:
    """A file that is read from memory or not at all.

    wait: where the file is closed before anybody waits for its bytes.
    """

    def __init__(self, file: DiskFile, wait: Callable[[], object] | None = None) -> None:
        self._file = file
        self._wait = wait

    @property
    def path(self) -> str:
        return self._file.path

    def read_at(self, position: int, size: int) -> bytes:
        """Raises `WouldWait`, `FileError`."""
        data = self._file.read_cached(position, size)
        if data is None:
            raise WouldWait(self._wait or partial(self._file.read_at, position, size))
        return data
