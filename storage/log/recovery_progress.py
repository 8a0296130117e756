"""The progress of the check of one log's batches, for those who wait for it or want it to end.

The thread that recovers the log counts; others read the counts, and may ask it to stop, at any time.
"""

from collections.abc import Callable

from ..files.errors import StorageError


class RecoveryStopped(StorageError):
    """Recovery was asked to stop. The files are as a crash at that moment would have left them."""


class RecoveryProgress:
    """The progress of one recovery. is_stopped: asked at every batch."""

    __slots__ = ("_is_stopped", "bytes_checked", "bytes_to_check")

    def __init__(self, is_stopped: Callable[[], bool]) -> None:
        self._is_stopped = is_stopped
        self.bytes_to_check = 0
        self.bytes_checked = 0

    def begin(self, bytes_to_check: int) -> None:
        self.bytes_to_check += bytes_to_check

    def advance(self, bytes_checked: int) -> None:
        """Raises `RecoveryStopped`."""
        self.bytes_checked += bytes_checked
        if self._is_stopped():
            raise RecoveryStopped("recovery was stopped")
