"""Checks of what was found in the files, before it is served for the first time (`LogValidator` knows only appends).

A clean start trusts the files: it looks at their ends. A bit that flipped since, in a batch or in the bytes in front of
its checksum, must be found before a reader gets it. Checks read a lot and may run in a thread: they are made where the
log lives, `run` there or elsewhere, and `accept` where they were made.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from pykbroker.protocol.records.batch import NO_PARTITION_LEADER_EPOCH, RecordBatchHeader

from ..files.cached_reads import WouldWait
from ..files.errors import CorruptLog
from .batch_scan import scan_batches, scan_headers
from .leader_epochs import EpochEntry, epoch_at
from .segment import LOG_SUFFIX, LogSegment
from .verified_extents import VerifiedExtents

READ_ON_BYTES = 4 << 20
"""What a reader who goes through a segment will ask for next."""


class Check(Protocol):
    def run(self) -> None:
        """Raises `CorruptLog`, `FileError`; of no meaning where the log was changed meanwhile (`is_overtaken`)."""
        ...

    def accept(self) -> None:
        """Note what was found sound."""
        ...

    @property
    def is_overtaken(self) -> bool: ...


class NotVerified(Exception):
    """A read that needs a check first; then it may be repeated."""

    def __init__(self, check: Check) -> None:
        super().__init__("not verified")
        self.check = check


class ExtentCheck:
    """The check of batches between two positions of a segment: checksums, offsets in order, epochs that the log knows.

    start: where a batch begins. The check goes on to the end of the last batch and compares with the one behind it.
    """

    def __init__(
        self,
        segment: LogSegment,
        extents: VerifiedExtents,
        epochs: Sequence[EpochEntry],
        start: int,
        end: int,
        *,
        may_have_holes: bool,
    ) -> None:
        self._segment = segment
        self._extents = extents
        self._file = segment.file
        self._epochs = list(epochs)
        self._start = self._position = start
        self._limit = extents.end
        self._limit_offset = extents.end_offset
        self._may_have_holes = may_have_holes
        self._stop = min(end, self._limit)

    def run(self) -> None:
        next_offset = self._segment.base_offset
        for position, batch in scan_batches(self._file, self._start, self._limit):
            self._position = position
            self._check_place(batch.header, next_offset)
            if position >= self._stop:
                return
            if not batch.is_crc_valid:
                raise self._damaged("the checksum is wrong")
            self._check_epoch(batch.header)
            next_offset = batch.header.next_offset
            self._position = position + batch.header.size_bytes
        if self._position != self._limit:
            raise self._damaged("there is no batch")
        if self._limit_offset not in (None, next_offset) and not self._may_have_holes:
            raise self._damaged(f"the segment ends at offset {next_offset}, not at {self._limit_offset}")

    def _check_place(self, header: RecordBatchHeader, next_offset: int) -> None:
        limit = self._limit_offset
        if header.base_offset < next_offset or header.last_offset_delta < 0:
            raise self._damaged(f"offset {header.base_offset} follows offset {next_offset - 1}")
        if limit is not None and header.next_offset > limit:
            raise self._damaged(f"offset {header.last_offset} stands in front of {limit}")

    def _check_epoch(self, header: RecordBatchHeader) -> None:
        """Check the epoch of a batch.

        In front of the first epoch that the log knows records are deleted; batches without one are older than epochs.
        """
        epoch = epoch_at(self._epochs, header.last_offset)
        if epoch is not None and header.partition_leader_epoch not in (epoch, NO_PARTITION_LEADER_EPOCH):
            raise self._damaged(f"the batch has the leader epoch {header.partition_leader_epoch}, not {epoch}")

    def _damaged(self, problem: str) -> CorruptLog:
        path = self._segment.path(LOG_SUFFIX)
        return CorruptLog(f"{path} is damaged at position {self._position}: {problem}")

    def accept(self) -> None:
        if not self.is_overtaken:
            self._extents.add(self._start, self._position)

    @property
    def is_overtaken(self) -> bool:
        is_cut = self._extents.end < self._limit
        return self._segment.is_deleted or is_cut or self._segment.extents is not self._extents


class PageRead:
    """The read of a place in a segment that is not in memory; it checks nothing. on_read: told once it was read."""

    def __init__(self, segment: LogSegment, uncached: WouldWait, on_read: Callable[[], object]) -> None:
        self._segment = segment
        self._wait = uncached.wait
        self._on_read = on_read

    def run(self) -> None:
        self._wait()

    def accept(self) -> None:
        self._on_read()

    @property
    def is_overtaken(self) -> bool:
        return self._segment.is_deleted


class IndexCheck:
    """The rebuild of a segment's wrong offset index from the batches' headers."""

    def __init__(self, segment: LogSegment) -> None:
        self._segment = segment
        self._file = segment.file
        self._size = segment.size
        self._entries: list[tuple[int, int]] = []

    def run(self) -> None:
        end = 0
        since_entry = 0
        next_offset = self._segment.base_offset
        for position, header in scan_headers(self._file, 0, self._size):
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                break
            if since_entry > self._segment.index_interval_bytes:
                self._entries.append((header.last_offset, position))
                since_entry = 0
            since_entry += header.size_bytes
            next_offset, end = header.next_offset, position + header.size_bytes
        if end != self._size:
            raise CorruptLog(f"{self._segment.path(LOG_SUFFIX)} is damaged at position {end}: there is no batch")

    def accept(self) -> None:
        if not self.is_overtaken:
            self._segment.offset_index.replace_in_front(self._entries, self._size)

    @property
    def is_overtaken(self) -> bool:
        return self._segment.is_deleted or self._segment.size < self._size
