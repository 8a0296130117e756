"""Finding and reading what a log holds, checked before it is served for the first time (`LocalLog.read`).

Which offsets may be read, and by whom, is decided by those who ask. Nothing here changes a file, except that an index
that lies is built anew. A read that needs a check, or a page that is not in memory, raises `NotVerified` and may be
asked for again afterwards.
"""

import logging
import posixpath
from dataclasses import dataclass
from functools import partial

from ..files.cached_reads import WouldWait
from ..files.disk import DiskFile
from ..files.errors import CorruptIndex, CorruptLog
from ..segments.leader_epochs import LeaderEpochs
from ..segments.segment import LOG_SUFFIX, LogSegment
from ..segments.transaction_index import AbortedTransaction
from ..segments.verification import READ_ON_BYTES, ExtentCheck, IndexCheck, NotVerified, PageRead
from ..segments.verified_extents import VerifiedExtents
from .log_segments import LogSegments

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Whole batches as they lie in a segment; the last one may be cut off. It keeps the file open.

    A slice is a `RecordsRegion`: an answer holds it in the place of bytes, and the transport sends it from the file.
    It stays readable when its segment is deleted or compacted.
    """

    file: DiskFile
    position: int
    size: int

    def read(self) -> bytes:
        """Read the bytes, which may wait for the disk. Raises `FileError`."""
        return self.file.read_at(self.position, self.size)


class LogReads:
    """Finding and reading in a log. may_have_holes: offsets may be missing, since compaction took them."""

    def __init__(self, segments: LogSegments, epochs: LeaderEpochs, *, may_have_holes: bool) -> None:
        self.may_have_holes = may_have_holes
        self._segments = segments
        self._epochs = epochs
        self._read_from_disk: set[int] = set()
        """Offsets whose place was not in memory, and is now."""

    def read(
        self, offset: int, limit_offset: int | None, max_bytes: int, min_one_batch: bool, *, cached_only: bool
    ) -> LogSlice:
        """Read as `Log.read` does, from an offset that the log has. limit_offset: None for the log's end.

        Raises `NotVerified`, `CorruptLog`.
        """
        segment, position = self._segments.recent.get(offset) or self._find(offset, cached_only=cached_only)
        available = (segment.size if limit_offset is None else self._end_position(segment, limit_offset)) - position
        if available > max_bytes:
            first_size = segment.header_at(position).size_bytes
            if first_size > max_bytes:
                max_bytes = first_size if min_one_batch else 0
        size = max(min(available, max_bytes), 0)
        if segment.extents is not None and size:
            self._ensure_verified(segment, segment.extents, offset, position, position + size)
        return LogSlice(segment.file, position, size)

    def _ensure_verified(
        self, segment: LogSegment, extents: VerifiedExtents, offset: int, position: int, end: int
    ) -> None:
        """Raises `NotVerified`."""
        if extents.covers(position, end):
            if extents.is_complete:
                segment.extents = None
            return
        # From a place that is known to be between two batches. Who comes from there will read on.
        start = extents.known_until(position)
        if start is None:
            raise NotVerified(self._check_of(segment, extents, segment.offset_index.lookup(offset), end))
        raise NotVerified(self._check_of(segment, extents, start, end + READ_ON_BYTES))

    def _check_of(self, segment: LogSegment, extents: VerifiedExtents, start: int, end: int) -> ExtentCheck:
        epochs = self._epochs.entries
        return ExtentCheck(segment, extents, epochs, start, end, may_have_holes=self.may_have_holes)

    # Places

    def start_of_batch(self, offset: int) -> int:
        """The base offset of the batch that holds this one, or that follows a hole. Raises `NotVerified`."""
        segment, position = self._find(offset)
        return segment.header_at(position).base_offset if position < segment.size else offset

    def _find(self, offset: int, *, cached_only: bool = False) -> tuple[LogSegment, int]:
        """Raises `NotVerified`: an index lies, or with `cached_only` a page is not in memory."""
        if offset in self._read_from_disk:
            # Once is enough, also where a file system never says that it has something in memory.
            self._read_from_disk.discard(offset)
            cached_only = False
        segments = self._segments.all
        first = self._segments.number_of(offset)
        for segment in segments[first:]:
            try:
                found = segment.find_batch(offset, cached_only=cached_only)
            except WouldWait as uncached:
                raise NotVerified(PageRead(segment, uncached, partial(self._read_from_disk.add, offset))) from None
            except CorruptIndex as lie:
                _log.warning("building the index anew: %s", lie)
                raise NotVerified(IndexCheck(segment)) from lie
            if found is not None:
                if segment is not segments[first] and not self.may_have_holes:
                    missing = f"offsets {offset} to {segment.base_offset - 1}"
                    directory = posixpath.dirname(segment.path(LOG_SUFFIX))
                    raise CorruptLog(f"{directory} is damaged: {missing} are missing")
                return segment, found[0]
        # Everything from here to the log's end was compacted away.
        return self._segments.active, self._segments.active.size

    def _end_position(self, segment: LogSegment, end_offset: int) -> int:
        """Return where the batches below `end_offset` end in this segment."""
        end_segment, end_position = self._segments.recent.get(end_offset) or self._find(end_offset)
        if end_segment is segment:
            return end_position
        return segment.size if end_segment.base_offset > segment.base_offset else 0

    # Transactions

    def aborted_transactions(self, start_offset: int, upper_bound_offset: int) -> list[AbortedTransaction]:
        """Those that have records between the two offsets, and perhaps others beside them."""
        found: list[AbortedTransaction] = []
        for segment in self._segments.all[self._segments.number_of(start_offset) :]:
            if segment.transaction_index.is_empty:
                continue
            transactions, is_complete = segment.transaction_index.collect(start_offset, upper_bound_offset)
            found += transactions
            if is_complete:
                break
        return found

    def upper_bound_of(self, start_offset: int, records: LogSlice) -> int | None:
        """Return an offset as near behind the last record as the offset index tells; None for the log's end."""
        segments = self._segments.all
        for number in range(self._segments.number_of(start_offset), len(segments)):
            segment = segments[number]
            if segment.has_file(records.file):
                offset = segment.upper_bound_of(records.position + records.size)
                if offset is not None:
                    return offset
                if number + 1 < len(segments):
                    return segments[number + 1].base_offset
        return None
