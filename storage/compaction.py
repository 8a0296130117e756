"""Cleaning one log: the latest record of each key stays, with its offset and in its place (`Cleaner`).

First the keys of the dirty part are read into a `KeyOffsetMap`, as far as it reaches. Then the segments from the first
one on are copied, group by group, into one new segment each. Appends and reads go on meanwhile: a cleaning only reads
segments that nobody writes to, and its steps may run in a thread, except `begin_swap` and `swap`, which change the log.

    cleaning = Cleaning(cleanable, …)
    for group in cleaning.plan():
        segment = cleaning.clean(group)
        cleaning.begin_swap(segment, group), log.sync_names(), cleaning.swap(segment), log.sync_names()
    checkpoint cleaning.end_offset
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pykbroker.protocol.records.batch import RecordBatch, RecordBatchHeader, decode_batch_header, iter_records
from pykbroker.protocol.records.errors import InvalidRecords

from .batch_scan import scan_batches
from .cleanable_logs import CleanableLog
from .cleaned_transactions import AbortedTransaction, TransactionFilter, find_aborted_transactions
from .disk import Buffer
from .errors import CorruptLog, StorageError
from .indexes import MAX_RELATIVE_OFFSET
from .key_offsets import KeyOffsetMap
from .record_filter import RecordFilter, empty_batch, last_records
from .segment import LOG_SUFFIX, LogSegment

_WRITE_BYTES = 1024 * 1024


class CleaningAborted(StorageError):
    """The log is deleted, truncated or not ours any more, or the broker stops."""


@dataclass(frozen=True, slots=True)
class CleanerConfig:
    """memory_bytes: for the keys of one log at a time, `log.cleaner.dedupe.buffer.size` by the number of threads."""

    memory_bytes: int
    load_factor: float


Progress = Callable[[int], None]
"""Told how many bytes were read or written since the last time. It may wait, and raise `CleaningAborted`."""


class Cleaning:
    """One round over one log. To be made where the log is written to, since it looks at the producers."""

    def __init__(self, cleanable: CleanableLog, config: CleanerConfig, *, now_ms: int, progress: Progress) -> None:
        self._log = cleanable.log
        self._first_dirty = cleanable.first_dirty_offset
        self._end_of_cleanable = self.end_offset = cleanable.end_offset
        self._config = config
        self._now_ms = now_ms
        self._progress = progress
        self._truncations = cleanable.log.truncations
        self._producers = last_records(cleanable.log.producers.producers)
        self._all_segments = list(cleanable.log.segments)
        self._segments = [each for each in self._all_segments if each.base_offset < cleanable.end_offset]
        self._filter: RecordFilter | None = None

    # Reading the keys

    def plan(self) -> list[list[LogSegment]]:
        """Read the keys; the groups of segments to clean, in order. `end_offset` is known from then on.

        Raises `CleaningAborted`, `CorruptLog`, `DiskFailed`.
        """
        if self._log.recovery_point < self._end_of_cleanable:
            # A durable record must not go for a later one that a crash could still take.
            self._log.flush()
        aborted = find_aborted_transactions(self._all_segments, self._end_of_cleanable, self._progress)
        keys = KeyOffsetMap(
            memory_bytes=self._config.memory_bytes,
            load_factor=self._config.load_factor,
            expected_keys=self._end_of_cleanable - self._first_dirty,
        )
        self._read_keys(keys, aborted)
        if keys.latest_offset < self._first_dirty:
            raise CorruptLog(f"the keys at offset {self._first_dirty} do not fit into log.cleaner.dedupe.buffer.size")
        self.end_offset = keys.latest_offset + 1
        self._filter = RecordFilter(
            keys,
            TransactionFilter(aborted),
            self._producers,
            now_ms=self._now_ms,
            delete_retention_ms=self._log.config.delete_retention_ms,
        )
        return self._group([each for each in self._segments if each.base_offset < self.end_offset])

    def _read_keys(self, keys: KeyOffsetMap, aborted: Sequence[AbortedTransaction]) -> None:
        transactions = TransactionFilter(aborted, self._first_dirty)
        for number, segment in enumerate(self._segments):
            next_offset = self._end_offset_of(number)
            if next_offset <= self._first_dirty:
                continue
            position = segment.offset_index.lookup(self._first_dirty)
            for batch in self._batches(segment, position):
                if batch.header.last_offset < self._first_dirty:
                    continue
                if not self._read_keys_of(batch, keys, transactions):
                    return
                keys.latest_offset = batch.header.last_offset
            # Behind the last batch there may be a hole.
            keys.latest_offset = next_offset - 1

    def _read_keys_of(self, batch: RecordBatch, keys: KeyOffsetMap, transactions: TransactionFilter) -> bool:
        """False where the keys do not fit any more."""
        if batch.header.is_control:
            transactions.may_drop_control(batch)
            return True
        if transactions.may_drop_data(batch.header):
            return True
        return all(
            keys.put(record.key, record.offset)
            for record in iter_records(batch)
            if record.key is not None and record.offset >= self._first_dirty
        )

    def _end_offset_of(self, number: int) -> int:
        following = number + 1
        return self._segments[following].base_offset if following < len(self._segments) else self._end_of_cleanable

    def _batches(self, segment: LogSegment, position: int = 0) -> Iterator[RecordBatch]:
        """What is damaged must not be copied under a new checksum."""
        end = segment.size
        try:
            for at, batch in scan_batches(segment.file, position, end):
                batch.ensure_valid()
                yield batch
                position = at + batch.header.size_bytes
                self._progress(batch.header.size_bytes)
        except InvalidRecords as error:
            raise CorruptLog(f"{segment.path(LOG_SUFFIX)}: {error.message}") from error
        if position != end:
            raise CorruptLog(f"{segment.path(LOG_SUFFIX)} has no batch at position {position}")

    # Copying what stays

    def _group(self, segments: Sequence[LogSegment]) -> list[list[LogSegment]]:
        """Neighbours that together are no larger than a segment may be: cleaned segments would get ever smaller."""
        groups: list[list[LogSegment]] = []
        size = 0
        for number, segment in enumerate(segments):
            last_offset = self._end_offset_of(number) - 1
            if (
                groups
                and size + segment.size <= self._log.config.segment_bytes
                and last_offset - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET
            ):
                groups[-1].append(segment)
                size += segment.size
            else:
                groups.append([segment])
                size = segment.size
        return groups

    def clean(self, group: Sequence[LogSegment]) -> LogSegment:
        """A new segment with what stays of the group: durable, and not yet part of the log.

        Raises `CleaningAborted`, `CorruptLog`, `DiskFailed`; then no file of it is left.
        """
        segment = self._log.new_cleaned_segment(group)
        try:
            self._copy(group, segment)
            segment.make_inactive()
            segment.sync()
            segment.sync_indexes()
        except StorageError:
            segment.delete()
            raise
        return segment

    def _copy(self, group: Sequence[LogSegment], target: LogSegment) -> None:
        """The group's last batch stays, empty if it must be, so that the new segment tells where it ends."""
        assert self._filter is not None, "plan() comes first"
        writer = _SegmentWriter(target, self._progress)
        last_dropped: RecordBatchHeader | None = None
        for segment in group:
            for batch in self._batches(segment):
                try:
                    kept = self._filter.clean(batch)
                except InvalidRecords as error:
                    raise CorruptLog(f"{segment.path(LOG_SUFFIX)}: {error.message}") from error
                last_dropped = batch.header if kept is None else None
                if kept is not None:
                    writer.write(kept)
        if last_dropped is not None:
            writer.write(empty_batch(last_dropped))
        writer.flush()

    # Taking the old segments' place

    def begin_swap(self, segment: LogSegment, group: Sequence[LogSegment]) -> None:
        """Raises `CleaningAborted` where the log is not what it was. Then the directory is to be synced."""
        # What made older records superfluous may have been truncated.
        is_truncated = self._log.truncations != self._truncations
        if is_truncated or not self._log.begin_replacement(segment, group):
            segment.delete()
            raise CleaningAborted(f"{self._log.directory} has changed")

    def swap(self, segment: LogSegment) -> list[str]:
        """The old files' paths, to be removed after `file.delete.delay.ms`. The directory is to be synced before that.

        Raises `CleaningAborted`.
        """
        paths = self._log.finish_replacement(segment)
        if paths is None:
            raise CleaningAborted(f"{self._log.directory} has changed")
        self._segments = [each for each in self._segments if not each.is_deleted]
        return paths

    @property
    def is_overtaken(self) -> bool:
        """Somebody else removed segments that were still to be cleaned; their files cannot be read any more."""
        return self._log.is_closed or any(each.is_deleted for each in self._segments)


class _SegmentWriter:
    """Many batches in one write."""

    def __init__(self, segment: LogSegment, progress: Progress) -> None:
        self._segment = segment
        self._progress = progress
        self._waiting: list[Buffer] = []
        self._waiting_bytes = 0

    def write(self, batch: Buffer) -> None:
        self._waiting.append(batch)
        self._waiting_bytes += len(batch)
        if self._waiting_bytes >= _WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        self._segment.file.append([b"".join(self._waiting)])
        for batch in self._waiting:
            self._segment.note_recovered(decode_batch_header(batch))
        self._progress(self._waiting_bytes)
        self._waiting, self._waiting_bytes = [], 0
