"""The start offsets of leader epochs in a partition's log, and their file (`LeaderEpochFileCache`, KIP-101).

The file is written when the log is flushed, not when an epoch begins: recovery finds the epochs of everything behind
the recovery point in the batches themselves.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ..files.checkpoints import decode_checkpoint, encode_checkpoint
from ..files.disk import Disk
from ..files.errors import CorruptLog

FILE_NAME = "leader-epoch-checkpoint"
STAGED_SUFFIX = ".tmp"

_NEVER = -1
"""The version of a file that is to be written, whatever changes."""

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


def epoch_at(entries: Sequence[EpochEntry], offset: int) -> int | None:
    at = bisect_right(entries, offset, key=_start_offset) - 1
    return entries[at].epoch if at >= 0 else None


class LeaderEpochs:
    """Entries ascend in epoch and in start offset. They change in one place; `write` may run in threads, whose files of
    one name would get into each other's way.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._entries: list[EpochEntry] = []
        self._version = self._written_version = 0
        self._writing = disk.turn()
        self._in_file: list[EpochEntry] = []
        self._is_file_durable = False
        self._is_staged = False

    def load(self, recovery_point: int) -> None:
        """A missing or empty file gives no entries. Raises `CorruptLog` for a damaged one.

        recovery_point: epochs in front of it were made durable. Where it is 0 a power cut may have left anything of the
        file, and all batches are going to be read.
        """
        is_torn = False
        try:
            self._read(may_be_torn=not recovery_point)
        except CorruptLog:
            if recovery_point:
                raise
            self._entries.clear()
            is_torn = True
        self._in_file = self.entries
        # The last one may begin where the records end. One that is alone there was perhaps written without a sync.
        entries = self._entries
        self._is_file_durable = not is_torn and (
            not entries or (entries[0].start_offset < recovery_point and entries[-1].start_offset <= recovery_point)
        )
        # A process that was killed may have left a file without a sync, and records behind it since.
        self._written_version = self._version if self._is_file_durable else _NEVER

    def _read(self, *, may_be_torn: bool) -> None:
        """Read the file. Others may write one whose last line has no end; where a file may be torn, it is."""
        if not self._disk.exists(self._path):
            return
        data = self._disk.read_file(self._path)
        if may_be_torn and data and not data.endswith(b"\n"):
            raise CorruptLog(f"{self._path} ends within a line")
        lines = decode_checkpoint(data, self._path)
        try:
            entries = [EpochEntry(int(epoch), int(start_offset)) for epoch, start_offset in lines]
        except ValueError as error:
            raise CorruptLog(f"{self._path} has a line that is not an epoch and an offset") from error
        if any(min(entry) < 0 for entry in entries) or not all(
            one.epoch < other.epoch and one.start_offset < other.start_offset for one, other in pairwise(entries)
        ):
            raise CorruptLog(f"{self._path} has epochs that are not in order")
        self._entries = entries

    def begin_rebuild(self) -> None:
        """Begin a rebuild: what the batches say is to be written down, be it nothing."""
        self.clear()

    def note(self, epoch: int, offset: int) -> None:
        """A batch has this epoch, or none (-1)."""
        latest = self.latest_epoch
        if epoch >= 0 and (latest is None or epoch > latest):
            self.assign(epoch, offset)

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
        self._version += 1

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
        return epoch_at(self._entries, offset)

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget epochs that begin at `end_offset` or later; whether there were any."""
        count = len(self._entries)
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
        if len(self._entries) == count:
            return False
        self._version += 1
        return True

    def truncate_from_start(self, start_offset: int) -> None:
        """The log begins at `start_offset` now: so does the epoch that holds it."""
        at = bisect_right(self._entries, start_offset, key=_start_offset) - 1
        if at > 0 or (at == 0 and self._entries[0].start_offset < start_offset):
            self._entries[: at + 1] = [EpochEntry(self._entries[at].epoch, start_offset)]
            self._version += 1

    def take_over(self, other: "LeaderEpochs") -> None:
        """Those of a log with the same records."""
        self._entries = other.entries
        self._version += 1

    def move_to(self, path: str) -> None:
        """The file has another name now."""
        self._path = path

    def clear(self) -> None:
        self._entries.clear()
        self._version += 1

    def write(self, end_offset: int) -> None:
        """Write the file, where something changed; durable where it tells of records, those below `end_offset`.

        An epoch that has no records yet is forgotten by whoever loads the file, and left out; a log that never had
        records gets a file once, without a sync.
        """
        with self._writing:
            version = self._version  # first: what changes from here on is to be written once more
            if version == self._written_version:
                return
            entries = list(self._entries)
            needed = [entry for entry in entries if entry.start_offset < end_offset]
            self._write(entries, needed, end_offset)
            if needed == entries:
                self._written_version = version

    def _write(self, entries: list[EpochEntry], needed: list[EpochEntry], end_offset: int) -> None:
        in_file = [entry for entry in self._in_file if entry.start_offset != end_offset]
        # An epoch that was given up: what an earlier one writes there would contradict the file, a later one does not.
        latest = entries[-1].epoch if entries else -1
        is_disproved = any(entry.epoch > latest for entry in self._in_file)
        if not needed and not self._is_file_durable and not is_disproved:
            if not self._in_file:
                self._replace_file(entries, sync=end_offset > 0)
        elif needed != in_file or not self._is_file_durable or is_disproved:
            self._replace_file(needed, sync=True)

    def stage(self, end_offset: int) -> None:
        """Write to a file beside the one that counts, and not durably; `replace_staged` puts it in place once it is.

        Nothing changes any more.
        """
        with self._writing:
            if self.lacks_write(end_offset):
                needed = [entry for entry in self._entries if entry.start_offset < end_offset]
                file = self._disk.open(self._path + STAGED_SUFFIX, create=True)
                if file.size():
                    file.truncate(0)
                file.append([encode_checkpoint(needed)])
                file.close()
                self._is_staged = True

    def lacks_write(self, end_offset: int) -> bool:
        """Tell whether the file does not hold what it is to hold, or not durably."""
        needed = [entry for entry in self._entries if entry.start_offset < end_offset]
        return needed != self._in_file or (bool(needed) and not self._is_file_durable)

    def replace_staged(self) -> bool:
        """Tell whether there was one. Its new name is to be made durable by the caller."""
        is_staged, self._is_staged = self._is_staged, False
        if is_staged:
            self._disk.rename(self._path + STAGED_SUFFIX, self._path)
        return is_staged

    def _replace_file(self, entries: list[EpochEntry], *, sync: bool) -> None:
        self._disk.replace_file(self._path, encode_checkpoint(entries), sync=sync)
        self._in_file, self._is_file_durable = entries, sync


def encode_epochs(entries: Sequence[EpochEntry]) -> bytes:
    """Return the file that has these."""
    return encode_checkpoint(entries)


def _epoch(entry: EpochEntry) -> int:
    return entry.epoch


def _start_offset(entry: EpochEntry) -> int:
    return entry.start_offset
