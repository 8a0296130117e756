"""One segment: a `.log` file of batches with its indexes (`LogSegment`).

It knows positions and offsets, not what a batch must be to be taken. Files are named by the base offset in 20 digits.
Only the active segment, the last one of a log, keeps its indexes in memory and is appended to.
"""

import errno
import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from pykbroker.protocol.records.batch import RecordBatch, RecordBatchHeader

from ..files.cached_reads import CachedFile
from ..files.disk import Buffer, Disk, DiskFile
from ..files.errors import CorruptIndex, CorruptLog, DiskFailed, FileError, NoRoom
from .batch_scan import scan_headers
from .indexes import MAX_RELATIVE_OFFSET, OffsetIndex, TimeIndex
from .log_config import LogConfig
from .transaction_index import TransactionIndex
from .verified_extents import VerifiedExtents

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


def put_aside_or_remove(disk: Disk, paths: Iterable[str]) -> list[str]:
    """Put files aside that only make sense beside data that is aside already, or remove them.

    Returns the paths of what there was.
    """
    found = []
    for path in paths:
        if disk.exists(path):
            try:
                found.append(put_aside(disk, path))
            except NoRoom:
                disk.remove(path)
    return found


class TimestampAndOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int | None = None


class SegmentCut(NamedTuple):
    """The place where a segment is to end, and the largest timestamp in front of that."""

    position: int
    latest: TimestampAndOffset


class Unconfirmed(NamedTuple):
    """The last entry of a time index, and up to where the batches are to be read."""

    timestamp: int
    offset: int
    size: int


class LogSegment:
    """`size` is the bytes of the `.log` file that are batches.

    is_deleted: its files are out of use. A thread that works on them finds out by it why they are gone.
    """

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
        self._stem = f"{directory}/{base_offset:020d}"
        self._name_suffix = name_suffix
        self._preallocated_bytes = config.segment_bytes if config.preallocate and not name_suffix else 0
        self._is_preallocated = False
        """The file is longer than `size`, in zeros, until the segment is not active any more."""
        self._is_cut = False
        """It was preallocated, and its new length may not be durable."""
        self._interval_bytes = config.index_interval_bytes
        self._bytes_since_index_entry = 0
        self._rolling_timestamp: int | None = None
        self._is_timestamp_of_index = False
        self._file: DiskFile | None = None
        self._is_abandoned = False
        self.is_deleted = False
        self.name_change = 1
        """Which one of the changes of the log's names made it (`LogNames`); 1 of those that a start found."""
        self.extents: VerifiedExtents | None = None
        """None where nothing needs a check any more before it is read."""
        max_bytes = config.segment_index_bytes
        self.offset_index = OffsetIndex(disk, self.path(INDEX_SUFFIX), base_offset, max_bytes=max_bytes)
        self.time_index = TimeIndex(disk, self.path(TIME_INDEX_SUFFIX), base_offset, max_bytes=max_bytes)
        self.transaction_index = TransactionIndex(disk, self.path(TRANSACTION_INDEX_SUFFIX))

    def __repr__(self) -> str:
        return f"<LogSegment {self.path(LOG_SUFFIX)} size={self.size}>"

    def path(self, suffix: str) -> str:
        return self._stem + suffix + self._name_suffix

    @property
    def latest_ms(self) -> int:
        """The time of its youngest record; where none has a timestamp, when the file was written to last."""
        if self.max_timestamp >= 0:
            return self.max_timestamp
        modified_ms = self._disk.modified_ms(self.path(LOG_SUFFIX))
        return self.created_ms if modified_ms is None else modified_ms

    @property
    def file(self) -> DiskFile:
        file = self._file  # a thread may have it while it is closed
        if file is None:
            file = self._file = self._disk.open(self.path(LOG_SUFFIX))
        return file

    def has_file(self, file: DiskFile) -> bool:
        return self._file is file

    @property
    def index_interval_bytes(self) -> int:
        return self._interval_bytes

    # Opening and closing

    def create(self) -> None:
        self._file = self._disk.open(self.path(LOG_SUFFIX), create=True)
        self._file.truncate(0)
        if self._preallocated_bytes:
            self._file.preallocate(self._preallocated_bytes)
            self._is_preallocated = True
        self.offset_index.create()
        self.time_index.create()
        self.transaction_index.reset()

    def open_inactive(self, end_offset: int) -> bool:
        """Trust the files after a look at the ends of the indexes; False where an index is missing or lies.
        The file is opened again when somebody reads from it.

        end_offset: where the next segment begins.
        """
        self.size = self.file.size()
        if not (self._disk.exists(self.offset_index.path) and self._disk.exists(self.time_index.path)):
            return False
        if self._ends_in_zeros():
            return False
        last = self.time_index.last()
        if last is not None:
            self.max_timestamp, self.offset_of_max_timestamp = last
            self._is_timestamp_of_index = True
        sound = self._is_last_index_entry_sound() and self._is_last_time_entry_sound(end_offset)
        self._file = None
        return sound

    def adopt(self, size: int, max_timestamp: int, offset_of_max_timestamp: int) -> None:
        """Another process has written the files of this segment, and tells what is in them."""
        self.size = size
        self.max_timestamp, self.offset_of_max_timestamp = max_timestamp, offset_of_max_timestamp
        if self.transaction_index.is_there():
            self.transaction_index.load()

    def _ends_in_zeros(self) -> bool:
        """A crash may have undone that a preallocated file was cut to its size. Few batches end in two zeros."""
        if not self.size or any(self.file.read_at(max(self.size - 2, 0), 2)):
            return False
        last = self.offset_index.last()
        end = 0 if last is None else last[1]
        for position, header in scan_headers(self.file, end, self.size):
            end = position + header.size_bytes
        return end != self.size

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
            return first is None or record_timestamp(first[1]) == NO_TIMESTAMP
        return last[1] < end_offset and self.time_index.is_end_sound()

    def are_indexes_sound(self) -> bool:
        """Look at all entries of the indexes: a power cut may have taken any page that was not synced, and entries at
        the end. The last time entry tells the largest timestamp of the segment.
        """
        if not (self.offset_index.is_sound() and self.time_index.is_sound()):
            return False
        last = self.time_index.last()
        if last is None:
            return True
        timestamp, offset = last
        is_there = False
        for _, header in scan_headers(self.file, self.offset_index.lookup(offset), self.size):
            if header.last_offset < offset:
                continue
            if header.base_offset <= offset:
                is_there = record_timestamp(header) == timestamp
            elif record_timestamp(header) > timestamp:
                return False
        return is_there

    def make_active(self) -> int | None:
        """Load the indexes and find the end. Returns the next offset, or None where the file has a torn tail or the
        index lies.
        """
        self.size = self.file.size()
        if not self.size:
            self.offset_index.begin_empty()
            self.time_index.begin_empty()
            return self.base_offset
        self.offset_index.load()
        self.time_index.load()
        last_time = self.time_index.last()
        if last_time is not None:
            self.max_timestamp, self.offset_of_max_timestamp = last_time
            self._is_timestamp_of_index = True
        last = self.offset_index.last()
        position = 0 if last is None else last[1]
        next_offset = self.base_offset
        for at, header in scan_headers(self.file, position, self.size):
            if last is not None and header.last_offset != last[0]:
                return None
            last = None
            next_offset = header.next_offset
            self._note_timestamp(record_timestamp(header), header.last_offset)
            position = at + header.size_bytes
        self.count_index_interval_anew()
        return next_offset if position == self.size and last is None else None

    def create_missing_indexes(self, names: Collection[str]) -> None:
        """Create those of a segment without batches, which nobody makes durable. names: of the files that are there."""
        for index in (self.offset_index, self.time_index):
            if posixpath.basename(index.path) not in names:
                index.create()

    def make_inactive(self) -> None:
        """The last time entry is the segment's largest timestamp. Raises `FileError`; then it is active still."""
        self.write_indexes()
        self.offset_index.unload(is_segment_empty=not self.size)
        self.time_index.unload(is_segment_empty=not self.size)

    def write_indexes(self) -> None:
        """Write all that an inactive segment's files must hold; cut a preallocated one to its size.

        Raises `FileError`; then it is active still, as it is if more batches come nevertheless.
        """
        if self._is_preallocated:
            self.cut_off(self.size)
            self._is_cut = True
        if self.max_timestamp > NO_TIMESTAMP:
            self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.write_pending()
        self.time_index.write_pending()
        self.transaction_index.write_unwritten()

    def close(self) -> None:
        """The data file stays open for as long as a slice of it is on its way to somebody."""
        self._file = None

    def abandon(self) -> None:
        """Close it for good. Nothing is synced any more: a file that is opened anew would know nothing of a write
        that failed behind the old descriptor.
        """
        self._is_abandoned = True
        self.close()

    def sync(self) -> None:
        with self._unless_deleted():
            file = self.file
            if self._is_abandoned:
                raise DiskFailed("sync", self.path(LOG_SUFFIX), OSError(errno.EBADF, "it is closed"))
            file.sync()
            self.transaction_index.sync()

    def check_written(self) -> None:
        """Check the writes behind a sync of the volume, in the place of `sync`."""
        with self._unless_deleted():
            file = self.file
            if self._is_abandoned:
                raise DiskFailed("sync", self.path(LOG_SUFFIX), OSError(errno.EBADF, "it is closed"))
            file.check_written()
            self.transaction_index.check_written()

    def sync_indexes(self) -> None:
        """Sync the indexes of an inactive segment, and the length of one that was preallocated."""
        with self._unless_deleted():
            if self._is_cut:
                self.file.sync()
                self._is_cut = False
            self.offset_index.sync()
            self.time_index.sync()

    @contextmanager
    def _unless_deleted(self) -> Iterator[None]:
        """A sync in a thread may find that the segment was deleted in the meantime."""
        try:
            yield
        except FileError:
            if not self.is_deleted:
                raise

    def delete(self) -> None:
        self.is_deleted = True
        self.close()
        for suffix in SEGMENT_SUFFIXES:
            self._disk.remove(self.path(suffix))

    def put_aside(self) -> list[str]:
        """Put the files out of use under names that say so. Returns the paths; slices of the file stay readable.

        Raises `FileError`; then it is in use still.
        """
        self.is_deleted = True
        try:
            paths = [put_aside(self._disk, self.path(LOG_SUFFIX))]
        except FileError:
            self.is_deleted = False
            raise
        self.close()
        return paths + put_aside_or_remove(self._disk, map(self.path, SEGMENT_SUFFIXES[1:]))

    def rename(self, name_suffix: str) -> None:
        """Give its files names with another suffix; they may be open."""
        before = {suffix: self.path(suffix) for suffix in SEGMENT_SUFFIXES}
        self._name_suffix = name_suffix
        for suffix, path in before.items():
            if self._disk.exists(path):
                self._disk.rename(path, self.path(suffix))
        self._name_indexes()

    def move_to(self, directory: str) -> None:
        """The directory has another name now; files stay open."""
        self._stem = f"{directory}/{self.base_offset:020d}"
        self._name_indexes()

    def _name_indexes(self) -> None:
        self.offset_index.path, self.time_index.path = self.path(INDEX_SUFFIX), self.path(TIME_INDEX_SUFFIX)
        self.transaction_index.path = self.path(TRANSACTION_INDEX_SUFFIX)

    # Appending

    def append(self, parts: Sequence[Buffer], size: int, last_offset: int, max_timestamp: int) -> None:
        """One batch of `size` bytes. Raises `FileError`; then it is not there."""
        if self._bytes_since_index_entry > self._interval_bytes or self.transaction_index.has_unwritten:
            self._write_index_pages()
        self.file.append(parts)
        self._note_batch(size, last_offset, max_timestamp)

    def append_batches(self, batches: Sequence[RecordBatch]) -> None:
        self._write_index_pages()
        self.file.append([batch.data for batch in batches])
        for header, _ in batches:
            self._note_batch(header.size_bytes, header.last_offset, record_timestamp(header))

    def _write_index_pages(self) -> None:
        """Write pages of the indexes before the batch: nothing may fail once that is written."""
        self.offset_index.write_pages()
        self.time_index.write_pages()
        self.transaction_index.write_unwritten()

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
        """Tell whether a batch must not go into this segment any more."""
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

    def plan_cut(self, offset: int) -> SegmentCut | None:
        """Plan the cut in front of the batch that holds `offset`; None where that and all behind it are not here.

        It loads the indexes: the segment is going to be active. For a thread, since that and the timestamps may mean to
        read much. Raises `CorruptIndex`, `CorruptLog`, `FileError`.
        """
        self.offset_index.load()
        self.time_index.load()
        found = self.find_batch(offset)
        if found is None:
            return None
        position = found[0]
        last = self.time_index.last_before(offset)
        latest = TimestampAndOffset(*(last or (NO_TIMESTAMP, self.base_offset)))
        start = 0 if last is None else self.offset_index.lookup(last[1])
        for _, header in scan_headers(self.file, start, position):
            timestamp = record_timestamp(header)
            if timestamp > latest.timestamp:
                latest = TimestampAndOffset(timestamp, header.last_offset)
        return SegmentCut(position, latest)

    def cut(self, offset: int, cut: SegmentCut | None) -> None:
        """Cut the segment as planned. The segment is active from now on."""
        self.count_index_interval_anew()
        if cut is None:
            self.cut_off(self.size)  # appends follow, to a file that may have got a second name since it was opened
            return
        self.cut_off(cut.position)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        if cut.position == 0:
            self._rolling_timestamp = None
        self.max_timestamp, self.offset_of_max_timestamp = cut.latest.timestamp, cut.latest.offset
        self._is_timestamp_of_index = False

    def count_index_interval_anew(self) -> None:
        """Count the index interval anew, as Kafka does after a start or a truncation: entries are at its places."""
        self._bytes_since_index_entry = 0

    def cut_off(self, position: int) -> None:
        self.file.truncate(position)
        self.size = position
        self._is_preallocated = False
        if self.extents is not None:
            self.extents.truncate(position)

    def rebuild_indexes(self) -> int:
        """Rebuild the indexes from the batches' headers, up to what is no next batch. Return the next offset.

        They take the place of those that are there with `replace_indexes`: a start looks at the ends of indexes, and
        would take a half of one that a crash has left for the whole.
        """
        self.begin_rebuild(aside=True)
        next_offset = self.base_offset
        for _, header in scan_headers(self.file, 0, self.file.size()):
            is_next = next_offset <= header.base_offset <= header.last_offset <= self.base_offset + MAX_RELATIVE_OFFSET
            if not is_next:
                break
            self.note_recovered(header)
            next_offset = header.next_offset
        return next_offset

    def replace_indexes(self) -> None:
        """End `rebuild_indexes`: the new indexes are durable, and in place once the directory is synced; a crash before
        that may bring the old ones back. The segment is inactive.
        """
        self.make_inactive()
        self.offset_index.replace()
        self.time_index.replace()

    def begin_rebuild(self, *, aside: bool = False) -> None:
        """Forget what offset and time index hold; `note_recovered` for each batch in order builds them anew.

        aside: in other files.
        """
        self.offset_index.create(aside=aside)
        self.time_index.create(aside=aside)
        self.size = self._bytes_since_index_entry = 0
        self.max_timestamp, self.offset_of_max_timestamp = NO_TIMESTAMP, self.base_offset
        self._rolling_timestamp = None
        self._is_timestamp_of_index = False

    @property
    def unconfirmed(self) -> Unconfirmed | None:
        """Return what the index says of the youngest record, where nobody has looked at the batches so far."""
        if not self._is_timestamp_of_index:
            return None
        return Unconfirmed(self.max_timestamp, self.offset_of_max_timestamp, self.size)

    def confirm_max_timestamp(self) -> None:
        """Confirm the largest timestamp by the batches: nothing is deleted because an index says that it is old."""
        unconfirmed = self.unconfirmed
        if unconfirmed is not None:
            self.confirm(unconfirmed, self.find_max_timestamp(unconfirmed))

    def find_max_timestamp(self, said: Unconfirmed) -> tuple[int, int]:
        """The timestamp of the youngest record, and its offset. Changes nothing, and may run in a thread."""
        is_there = False
        found = said.timestamp, said.offset
        for _, header in scan_headers(self.file, self.position_near(said.offset), said.size):
            is_there = is_there or (header.max_timestamp == said.timestamp and header.base_offset <= said.offset)
            found = _later(found, header)
        if is_there:
            return found
        found = NO_TIMESTAMP, self.base_offset
        for _, header in scan_headers(self.file, 0, said.size):
            found = _later(found, header)
        return found

    def confirm(self, said: Unconfirmed, found: tuple[int, int]) -> None:
        """Take what a thread found in the batches that were there; look at those that were appended since."""
        if not self._is_timestamp_of_index:
            return
        self._is_timestamp_of_index = False
        for _, header in scan_headers(self.file, said.size, self.size):
            found = _later(found, header)
        self.max_timestamp, self.offset_of_max_timestamp = found

    def note_recovered(self, header: RecordBatchHeader) -> None:
        self._note_batch(header.size_bytes, header.last_offset, record_timestamp(header))
        self._write_index_pages()

    # Reading

    def find_batch(self, offset: int, *, cached_only: bool = False) -> tuple[int, RecordBatchHeader] | None:
        """The first batch whose last offset is `offset` or above: the one that holds it, unless there is a hole.

        Raises `CorruptIndex`, `CorruptLog`, `FileError`, and `WouldWait` with `cached_only`.
        """
        entry = self.offset_index.entry_for(offset, cached_only=cached_only)
        end = 0 if entry is None else entry[1]
        file = CachedFile(self.file) if cached_only else self.file
        for position, header in scan_headers(file, end, self.size):
            if entry is not None:
                if header.last_offset != entry[0]:
                    break
                entry = None
            if header.last_offset >= offset:
                return position, header
            end = position + header.size_bytes
        if entry is not None:
            raise CorruptIndex(f"{self.offset_index.path} has a wrong position for offset {entry[0]}")
        if end != self.size:
            raise CorruptLog(f"{self.path(LOG_SUFFIX)} is damaged at position {end}: there is no batch")
        return None

    def position_near(self, offset: int) -> int:
        """Return a position at or before the batch with `offset`: that of the index, if it is right."""
        entry = self.offset_index.entry_for(offset)
        if entry is None:
            return 0
        header = next((header for _, header in scan_headers(self.file, entry[1], self.size)), None)
        return entry[1] if header is not None and header.last_offset == entry[0] else 0

    def header_at(self, position: int) -> RecordBatchHeader:
        header = next((header for _, header in scan_headers(self.file, position, self.size)), None)
        if header is None:
            raise CorruptLog(f"{self.path(LOG_SUFFIX)} has no batch at position {position}")
        return header

    def upper_bound_of(self, position: int) -> int | None:
        """An offset that no batch in front of this position reaches; None where the offset index does not know."""
        return self.offset_index.offset_behind(position)


def record_timestamp(header: RecordBatchHeader) -> int:
    """That of the youngest record. A batch that compaction left empty still tells of those that are gone."""
    return header.max_timestamp if header.records_count else NO_TIMESTAMP


def _later(found: tuple[int, int], header: RecordBatchHeader) -> tuple[int, int]:
    timestamp = record_timestamp(header)
    return (timestamp, header.last_offset) if timestamp > found[0] else found
