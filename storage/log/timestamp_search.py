"""Finding a record by its timestamp (KIP-79, KIP-734), in steps (`steps`): beside a log that is in use.

At once is done what is in memory: which segment, and where in it to begin. Headers and batches are read in jobs, a
batch is decompressed in one, and its records are looked at in turns. After each of these the log may be another one:
records were taken back, a segment was deleted, or compacted into another. What was found then counts for nothing, also
where it looked like damage, and the search begins anew. A file that a job reads stays open, whatever becomes of its
segment.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar, cast

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.batch import (
    COMPRESSION_MASK,
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD_BYTES,
    RecordBatch,
    RecordBatchHeader,
    TimestampType,
    iter_records,
)
from pykbroker.protocol.records.checking import CheckBudget
from pykbroker.protocol.records.compression import decompress_large, limit_of
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.timestamps import Deltas, first_record_in_turns
from pykbroker.protocol.records.varints import IndexedBytes

from ..files.cached_reads import WouldWait
from ..files.disk import DiskFile
from ..files.errors import CorruptLog
from ..files.steps import JOB_FAILURES, MEDIUM_BYTES, Job, Steps
from ..segments.batch_scan import scan_batches, scan_headers
from ..segments.segment import LOG_SUFFIX, LogSegment, TimestampAndOffset, record_timestamp
from .log_segments import LogSegments
from .log_state import LogState

T = TypeVar("T")

_HEADERS_AT_ONCE = 1000
"""A thread that walks them keeps the event loop from going on."""
_EVERY_TIMESTAMP = -(2**64)
_EVERY_OFFSET = -1

# Costs in units of `CheckBudget`.
_LOOKUP = 100
_SEGMENTS = 5  # as a shift


class _Overtaken(Exception):
    """The log is not what it was when the search began."""


class _Wanted(NamedTuple):
    """The first record with this timestamp or a later one, from an offset on. is_latest: only the latest of a batch."""

    timestamp: int
    start_offset: int
    is_latest: bool


class _Place(NamedTuple):
    """The place of a batch. header: None where the headers have to be read on from there."""

    position: int
    header: RecordBatchHeader | None


class _Records(NamedTuple):
    """Those of a batch, decompressed, from one position of `data` to another."""

    data: IndexedBytes
    start: int
    end: int


class TimestampSearch:
    """One lookup."""

    def __init__(self, log: LogState, segments: LogSegments, budget: CheckBudget) -> None:
        self._log = log
        self._segments = segments
        self._budget = budget
        self._log_state = self._state()

    def first_from(self, timestamp: int) -> Steps[TimestampAndOffset | None]:
        """The first record with this timestamp or a later one. Raises `CorruptLog`, `FileError`."""
        return self._until_not_overtaken(partial(self._first_from, timestamp))

    def first_of_latest(self) -> Steps[TimestampAndOffset | None]:
        """The first record that has the largest timestamp of all. Raises as `first_from` does."""
        return self._until_not_overtaken(self._first_of_latest)

    def _until_not_overtaken(
        self, search: Callable[[], Steps[TimestampAndOffset | None]]
    ) -> Steps[TimestampAndOffset | None]:
        while True:
            self._log_state = self._state()
            try:
                return (yield from search())
            except _Overtaken:
                if self._log.is_closed:
                    return None

    def _first_from(self, timestamp: int) -> Steps[TimestampAndOffset | None]:
        start_offset = self._log.log_start_offset
        segments = self._segments.all[self._segments.number_of(start_offset) :]
        self._budget.left -= len(segments) >> _SEGMENTS
        wanted = _Wanted(timestamp, start_offset, is_latest=False)
        for segment in [each for each in segments if each.max_timestamp >= timestamp and not each.is_deleted]:
            found = yield from _InSegment(segment, self._budget, self._is_overtaken).first(wanted)
            if found is not None:
                if found.offset < self._log.log_start_offset:
                    raise _Overtaken
                return found
        return None

    def _first_of_latest(self) -> Steps[TimestampAndOffset | None]:
        self._budget.left -= len(self._segments.all) >> _SEGMENTS
        present = (each for each in self._segments.all if not each.is_deleted)
        segment = max(present, key=_max_timestamp, default=None)
        if segment is None or segment.max_timestamp < 0:
            return None
        wanted = _Wanted(segment.max_timestamp, _EVERY_OFFSET, is_latest=True)
        return (yield from _InSegment(segment, self._budget, self._is_overtaken).first(wanted))

    def _is_overtaken(self) -> bool:
        return self._state() != self._log_state

    def _state(self) -> tuple[int, bool, bool]:
        return self._log.truncations, self._log.is_being_truncated, self._log.is_closed


def _max_timestamp(segment: LogSegment) -> int:
    return segment.max_timestamp


class _InSegment:
    """The search in as much of a segment as there was at the beginning."""

    def __init__(self, segment: LogSegment, budget: CheckBudget, is_overtaken: Callable[[], bool]) -> None:
        self._segment = segment
        self._end = segment.size
        self._budget = budget
        self._is_overtaken = is_overtaken
        self._ensure_current()
        self._file = segment.file

    def first(self, wanted: _Wanted) -> Steps[TimestampAndOffset | None]:
        entry = yield from self._index_entry(wanted)
        position = 0 if entry is None else entry[1]
        while True:
            place = yield from self._job(partial(_next_place, self._file, entry, position, self._end, wanted))
            if place is None:
                return None
            entry, position = None, place.position
            if place.header is not None:
                found = yield from self._first_in_batch(position, place.header, wanted)
                self._ensure_current()
                if found is not None:
                    return found
                position += place.header.size_bytes

    def _index_entry(self, wanted: _Wanted) -> Steps[tuple[int, int] | None]:
        """(last offset, position) of a batch in front of everything that is wanted, as the indexes have it."""
        if self._budget.left <= 0:
            yield None
            self._ensure_current()
        self._budget.left -= _LOOKUP
        segment = self._segment
        if wanted.is_latest:
            offset = segment.offset_of_max_timestamp
        else:
            look_up = partial(segment.time_index.lookup, wanted.timestamp)
            offset = max((yield from self._looked_up(look_up)), wanted.start_offset)
        return (yield from self._looked_up(partial(segment.offset_index.entry_for, offset)))

    def _looked_up(self, look_up: Callable[..., T]) -> Steps[T]:
        try:
            return look_up(cached_only=True)
        except WouldWait as uncached:
            wait = uncached.wait
        yield from self._job(wait)
        # Once is enough, also where a file system never says that it has something in memory.
        return look_up(cached_only=False)

    def _first_in_batch(
        self, position: int, header: RecordBatchHeader, wanted: _Wanted
    ) -> Steps[TimestampAndOffset | None]:
        if wanted.is_latest:
            wanted = wanted._replace(timestamp=header.max_timestamp)
        try:
            if header.magic < MAGIC_VALUE_V2:
                work = partial(_first_in_message, self._file, position, header, wanted)
                return (yield from self._job(work, is_large=bool(header.attributes & COMPRESSION_MASK)))
            return (yield from self._first_record(position, header, wanted))
        except InvalidRecords as error:
            self._ensure_current()
            path = self._segment.path(LOG_SUFFIX)
            raise CorruptLog(f"{path} is damaged at position {position}: {error.message}") from error

    def _first_record(
        self, position: int, header: RecordBatchHeader, wanted: _Wanted
    ) -> Steps[TimestampAndOffset | None]:
        records = yield from self._records(position, header)
        is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
        least = Deltas(
            _EVERY_TIMESTAMP if is_append_time else wanted.timestamp - header.base_timestamp,
            wanted.start_offset - header.base_offset,
        )
        found = yield from first_record_in_turns(*records, header.records_count, least, self._budget)
        if found is None:
            return None
        timestamp = header.max_timestamp if is_append_time else header.base_timestamp + found.timestamp_delta
        return TimestampAndOffset(timestamp, header.base_offset + found.offset_delta, header.partition_leader_epoch)

    def _records(self, position: int, header: RecordBatchHeader) -> Steps[_Records]:
        """Most decompress to a medium size. Those that do not are read anew: who waits for memory has none."""
        limit_bytes = limit_of(header.size_bytes)
        read = partial(_read_records, self._file, position, header)
        if header.size_bytes <= MEDIUM_BYTES:
            try:
                return (yield from self._job(partial(read, MEDIUM_BYTES)))
            except InvalidRecords as error:
                if error.code is not ErrorCode.MESSAGE_TOO_LARGE:
                    raise
        return (yield from self._job(partial(read, limit_bytes), is_large=True))

    def _job(self, work: Callable[[], T], *, is_large: bool = False) -> Steps[T]:
        try:
            result = yield Job(work, is_large)
        except JOB_FAILURES:
            self._ensure_current()
            raise
        self._ensure_current()
        return cast(T, result)

    def _ensure_current(self) -> None:
        segment = self._segment
        if self._is_overtaken() or segment.is_deleted or segment.size < self._end:
            raise _Overtaken


# What threads do


def _next_place(
    file: DiskFile, entry: tuple[int, int] | None, position: int, end: int, wanted: _Wanted
) -> _Place | None:
    """Return the next batch from `position` on that may hold what is wanted; None where there is none.

    entry: what an index says of the batch at `position`. Where it lies, the segment is read from its beginning.
    """
    for looked_at, (at, header) in enumerate(scan_headers(file, position, end)):
        if looked_at == _HEADERS_AT_ONCE:
            return _Place(at, None)
        if entry is not None and header.last_offset != entry[0]:
            break
        entry = None
        if record_timestamp(header) >= wanted.timestamp and header.last_offset >= wanted.start_offset:
            return _Place(at, header)
    return None if entry is None else _next_place(file, None, 0, end, wanted)


def _read_records(file: DiskFile, position: int, header: RecordBatchHeader, limit_bytes: int) -> _Records:
    data = file.read_at(position, header.size_bytes)
    batch = RecordBatch(header, memoryview(data))
    batch.ensure_valid()
    if not header.attributes & COMPRESSION_MASK:
        return _Records(data, RECORD_BATCH_OVERHEAD_BYTES, len(data))
    payload = batch.data[RECORD_BATCH_OVERHEAD_BYTES:]
    # What is in the log was let in, in however many parts it is.
    large = decompress_large(header.compression, payload, limit_bytes, max_parts=sys.maxsize)
    return _Records(large.data, 0, large.size)


def _first_in_message(
    file: DiskFile, position: int, header: RecordBatchHeader, wanted: _Wanted
) -> TimestampAndOffset | None:
    """Search in a message of format 0 or 1, which nobody sends any more."""
    [(_, message)] = scan_batches(file, position, position + header.size_bytes)
    message.ensure_valid()
    for record in iter_records(message):
        if record.timestamp >= wanted.timestamp and record.offset >= wanted.start_offset:
            return TimestampAndOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None
