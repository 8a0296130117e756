"""One segment: a `.log` file of batches with its two indexes (`LogSegment`).

It knows positions and offsets, not what a batch must be to be taken. Files are named by the base offset in 20 digits.
Only the active segment, the last one of a log, keeps its indexes in memory and is appended to.
"""

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from pykbroker.protocol.records.batch import RecordBatch, RecordBatchHeader, TimestampType, iter_records

from .batch_scan import scan_headers
from .disk import Buffer, Disk, DiskFile
from .errors import CorruptLog, DiskFailed
from .indexes import MAX_RELATIVE_OFFSET, OffsetIndex, TimeIndex
from .log_config import LogConfig

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
DELETED_SUFFIX = ".deleted"
"""Behind the names of files that are out of use and not removed yet."""
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
"""Behind the names of a segment that is to replace others: while it is written, and when it is whole."""

SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
"""The data first: indexes without it are known for leftovers."""

NO_TIMESTAMP = -1
MAX_POSITION = 2**31 - 1
"""Positions in an index are signed 32 bits in Kafka."""


def offset_file_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def put_aside(disk: Disk, path: str) -> str:
    disk.rename(path, path + DELETED_SUFFIX)
    return path + DELETED_SUFFIX


class TimestampAndOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int | None = None


class LogSegment:
    """`size` is the bytes of the `.log` file that are batches."""

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, config: LogConfig, now_ms: int, *, name_suffix: str = ""
    ) -> None:
        self.base_offset = base_offset
        self.size = 0
        self.created_ms = now_ms
        self.max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = base_offset
        """The last offset of the first batch with the largest timestamp, as the time index has it."""
        self._disk = disk
        self._directory = directory
        self._name_suffix = name_suffix
        self._interval_bytes = config.index_interval_bytes
        self._bytes_since_index_entry = 0
        self._rolling_timestamp: int | None = None
        self._file: DiskFile | None = None
        self.is_deleted = False
        max_bytes = config.segment_index_bytes
        self.offset_index = OffsetIndex(disk, self.path(INDEX_SUFFIX), base_offset, max_bytes=max_bytes)
        self.time_index = TimeIndex(disk, self.path(TIME_INDEX_SUFFIX), base_offset, max_bytes=max_bytes)

    def __repr__(self) -> str:
        return f"<LogSegment {self.path(LOG_SUFFIX)} size={self.size}>"

    def path(self, suffix: str) -> str:
        return posixpath.join(self._directory, offset_file_name(self.base_offset, suffix) + self._name_suffix)

    @property
    def file(self) -> DiskFile:
        if self._file is None:
            self._file = self._disk.open(self.path(LOG_SUFFIX))
        return self._file

    # Opening and closing

    def create(self) -> None:
        self._file = self._disk.open(self.path(LOG_SUFFIX), create=True)
        self._file.truncate(0)
        self.offset_index.create()
        self.time_index.create()

    def open_inactive(self, end_offset: int) -> bool:
        """Trust the files after a look at the ends of the indexes; False where an index is missing or lies.
        The file is opened again when somebody reads from it.

        end_offset: where the next segment begins.
        """
        self.size = self.file.size()
        if not (self._disk.exists(self.offset_index.path) and self._disk.exists(self.time_index.path)):
            return False
        last = self.time_index.last()
        if last is not None:
            self.max_timestamp, self.offset_of_max_timestamp = last
        sound = self._is_last_index_entry_sound() and self._is_last_time_entry_sound(end_offset)
        self._file = None
        return sound

    def _is_last_index_entry_sound(self) -> bool:
        last = self.offset_index.last()
        if last is None or not self.offset_index.is_end_sound():
            return last is None
        offset, position = last
        header = next((header for _, header in scan_headers(self.file, position, self.size)), None)
        return header is not None and header.last_offset == offset

    def _is_last_time_entry_sound(self, end_offset: int) -> bool:
        last = self.time_index.last()
        if last is None:
            # Right only where no record has a timestamp.
            first = next(scan_headers(self.file, 0, self.size), None)
            return first is None or _record_timestamp(first[1]) == NO_TIMESTAMP
        return last[1] < end_offset and self.time_index.is_end_sound()

    def make_active(self) -> int | None:
        """Load the indexes and find the end. Returns the next offset, or None where the file has a torn tail."""
        self.size = self.file.size()
        self.offset_index.load()
        self.time_index.load()
        last_time = self.time_index.last()
        if last_time is not None:
            self.max_timestamp, self.offset_of_max_timestamp = last_time
        last = self.offset_index.last()
        position = 0 if last is None else last[1]
        next_offset = self.base_offset
        indexed_until = position
        for at, header in scan_headers(self.file, position, self.size):
            next_offset = header.next_offset
            self._note_timestamp(_record_timestamp(header), header.last_offset)
            position = at + header.size_bytes
        self._bytes_since_index_entry = position - indexed_until
        return next_offset if position == self.size else None

    def make_inactive(self) -> None:
        """The last time entry is the segment's largest timestamp."""
        if self.max_timestamp > NO_TIMESTAMP:
            self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.unload()
        self.time_index.unload()

    def close(self) -> None:
        """The data file stays open for as long as a slice of it is on its way to somebody."""
        self._file = None

    def sync(self) -> None:
        with self._unless_deleted():
            self.file.sync()

    def sync_indexes(self) -> None:
        """Only for an inactive segment."""
        with self._unless_deleted():
            self.offset_index.sync()
            self.time_index.sync()

    @contextmanager
    def _unless_deleted(self) -> Iterator[None]:
        """A sync in a thread may find that the segment was deleted in the meantime."""
        try:
            yield
        except DiskFailed:
            if not self.is_deleted:
                raise

    def delete(self) -> None:
        self.is_deleted = True
        self.close()
        for suffix in SEGMENT_SUFFIXES:
            self._disk.remove(self.path(suffix))

    def put_aside(self) -> list[str]:
        """Out of use under names that say so. Returns the paths; slices of the file stay readable."""
        self.is_deleted = True
        self.close()
        return [put_aside(self._disk, path) for path in map(self.path, SEGMENT_SUFFIXES) if self._disk.exists(path)]

    def rename(self, name_suffix: str) -> None:
        """Give its files names with another suffix; they may be open."""
        before = {suffix: self.path(suffix) for suffix in SEGMENT_SUFFIXES}
        self._name_suffix = name_suffix
        for suffix, path in before.items():
            if self._disk.exists(path):
                self._disk.rename(path, self.path(suffix))
        self.offset_index.path, self.time_index.path = self.path(INDEX_SUFFIX), self.path(TIME_INDEX_SUFFIX)

    # Appending

    def append(self, parts: Sequence[Buffer], size: int, last_offset: int, max_timestamp: int) -> None:
        """One batch of `size` bytes."""
        self.file.append(parts)
        self._note_batch(size, last_offset, max_timestamp)

    def append_batches(self, batches: Sequence[RecordBatch]) -> None:
        self.file.append([batch.data for batch in batches])
        for batch in batches:
            self.note_recovered(batch.header)

    def _note_batch(self, size: int, last_offset: int, max_timestamp: int) -> None:
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self._bytes_since_index_entry > self._interval_bytes:
            self.offset_index.append(last_offset, self.size)
            self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size
        self.size += size

    def _note_timestamp(self, max_timestamp: int, last_offset: int) -> None:
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset

    def should_roll(
        self, size: int, last_offset: int, max_timestamp: int, now_ms: int, config: LogConfig, jitter_ms: int
    ) -> bool:
        """Whether a batch must not go into this segment any more."""
        if not self.size:
            return False
        if self.size + size > config.segment_bytes or last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if self.offset_index.is_full or self.time_index.is_full:
            return True
        waited_ms = self._waited_ms(now_ms, max_timestamp) + jitter_ms
        return waited_ms > config.segment_ms or (waited_ms > config.max_compaction_lag_ms and config.compact)

    def _waited_ms(self, now_ms: int, max_timestamp: int) -> int:
        """The age of the segment by its records' timestamps, or by the clock where records have none."""
        if self._rolling_timestamp is None:
            first = next(scan_headers(self.file, 0, self.size), None)
            self._rolling_timestamp = NO_TIMESTAMP if first is None else first[1].max_timestamp
        if self._rolling_timestamp >= 0:
            return max_timestamp - self._rolling_timestamp
        return now_ms - self.created_ms

    # Truncation and recovery

    def truncate_to(self, offset: int) -> None:
        """Cut off the batch that holds `offset` and all behind it. The segment must be active."""
        found = self.find_batch(offset)
        if found is None:
            return
        position = found[0]
        self.cut_off(position)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        if position == 0:
            self._rolling_timestamp = None
        last = self.time_index.last()
        self.max_timestamp, self.offset_of_max_timestamp = last or (NO_TIMESTAMP, self.base_offset)
        last_indexed = self.offset_index.last()
        start = 0 if last is None else self.offset_index.lookup(last[1])
        for _, header in scan_headers(self.file, start, self.size):
            self._note_timestamp(_record_timestamp(header), header.last_offset)
        self._bytes_since_index_entry = self.size - (0 if last_indexed is None else last_indexed[1])

    def cut_off(self, position: int) -> None:
        self.file.truncate(position)
        self.size = position

    def rebuild_indexes(self) -> None:
        """From the batches' headers, up to `size`."""
        self.begin_rebuild()
        for _, header in scan_headers(self.file, 0, self.file.size()):
            self.note_recovered(header)

    def begin_rebuild(self) -> None:
        """Forget what the indexes hold; `note_recovered` for each batch in order builds them anew."""
        self.offset_index.create()
        self.time_index.create()
        self.size = self._bytes_since_index_entry = 0
        self.max_timestamp, self.offset_of_max_timestamp = NO_TIMESTAMP, self.base_offset
        self._rolling_timestamp = None

    def note_recovered(self, header: RecordBatchHeader) -> None:
        self._note_batch(header.size_bytes, header.last_offset, _record_timestamp(header))

    # Reading

    def find_batch(self, offset: int) -> tuple[int, RecordBatchHeader] | None:
        """The first batch whose last offset is `offset` or above: the one that holds it, unless there is a hole."""
        for position, header in scan_headers(self.file, self.offset_index.lookup(offset), self.size):
            if header.last_offset >= offset:
                return position, header
        return None

    def header_at(self, position: int) -> RecordBatchHeader:
        header = next((header for _, header in scan_headers(self.file, position, self.size)), None)
        if header is None:
            raise CorruptLog(f"{self.path(LOG_SUFFIX)} has no batch at position {position}")
        return header

    def find_timestamp(self, timestamp: int, start_offset: int) -> TimestampAndOffset | None:
        """The first record from `start_offset` on with this timestamp or a later one."""
        start = self.offset_index.lookup(max(self.time_index.lookup(timestamp), start_offset))
        for position, header in scan_headers(self.file, start, self.size):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            data = self.file.read_at(position, header.size_bytes)
            for record in iter_records(data):
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return TimestampAndOffset(record.timestamp, record.offset, header.partition_leader_epoch)
        return None

    def find_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record that has the segment's largest timestamp."""
        start = self.offset_index.lookup(self.offset_of_max_timestamp)
        for position, header in scan_headers(self.file, start, self.size):
            if _record_timestamp(header) < self.max_timestamp:
                continue
            epoch = header.partition_leader_epoch
            if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
                return TimestampAndOffset(header.max_timestamp, header.last_offset, epoch)
            for record in iter_records(self.file.read_at(position, header.size_bytes)):
                if record.timestamp == header.max_timestamp:
                    return TimestampAndOffset(record.timestamp, record.offset, epoch)
        return None


def _record_timestamp(header: RecordBatchHeader) -> int:
    """That of the youngest record. A batch that compaction left empty still tells of those that are gone."""
    return header.max_timestamp if header.records_count else NO_TIMESTAMP
