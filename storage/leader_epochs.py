"""Where each leader epoch began in a partition's log (`LeaderEpochFileCache`, KIP-101), and its checkpoint file.

The file is written when the log is flushed, not when an epoch begins: recovery finds the epochs of everything behind
the recovery point in the batches themselves.
"""

from bisect import bisect_right
from typing import NamedTuple

from .checkpoints import decode_checkpoint, encode_checkpoint
from .disk import Disk
from .errors import CorruptLog

FILE_NAME = "leader-epoch-checkpoint"

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    """Entries ascend in epoch and in start offset."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._entries: list[EpochEntry] = []
        self._is_written = True

    def load(self) -> None:
        """A missing or empty file gives no entries. Raises `CorruptLog` for a damaged one."""
        if self._disk.exists(self._path):
            lines = decode_checkpoint(self._disk.read_file(self._path), self._path)
            try:
                for epoch, start_offset in lines:
                    self.assign(int(epoch), int(start_offset))
            except ValueError as error:
                raise CorruptLog(f"{self._path} has a line that is not an epoch and an offset") from error
        self._is_written = True

    @property
    def entries(self) -> list[EpochEntry]:
        return list(self._entries)

    @property
    def latest_epoch(self) -> int | None:
        return self._entries[-1].epoch if self._entries else None

    @property
    def earliest(self) -> EpochEntry | None:
        return self._entries[0] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """`epoch` begins at `start_offset`; nothing new for the latest epoch. Entries that contradict it go."""
        entries = self._entries
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(epoch, start_offset))
        self._is_written = False

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch up to the requested one, and where it ends; (-1, -1) where that is not known."""
        entries = self._entries
        if requested_epoch == UNDEFINED_EPOCH or not entries or requested_epoch > entries[-1].epoch:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if requested_epoch == entries[-1].epoch:
            return requested_epoch, log_end_offset
        above = bisect_right(entries, requested_epoch, key=_epoch)
        epoch = entries[above - 1].epoch if above else requested_epoch
        return epoch, entries[above].start_offset

    def epoch_for_offset(self, offset: int) -> int | None:
        at = bisect_right(self._entries, offset, key=_start_offset) - 1
        return self._entries[at].epoch if at >= 0 else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at `end_offset` or later."""
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
            self._is_written = False

    def truncate_from_start(self, start_offset: int) -> None:
        """The log begins at `start_offset` now: so does the epoch that holds it."""
        at = bisect_right(self._entries, start_offset, key=_start_offset) - 1
        if at > 0 or (at == 0 and self._entries[0].start_offset < start_offset):
            self._entries[: at + 1] = [EpochEntry(self._entries[at].epoch, start_offset)]
            self._is_written = False

    def clear(self) -> None:
        self._entries.clear()
        self._is_written = False

    def write(self, *, sync: bool) -> None:
        """To the file, where something changed."""
        if self._is_written:
            return
        self._is_written = True
        self._disk.replace_file(self._path, encode_checkpoint(list(self._entries)), sync=sync)


def _epoch(entry: EpochEntry) -> int:
    return entry.epoch


def _start_offset(entry: EpochEntry) -> int:
    return entry.start_offset
