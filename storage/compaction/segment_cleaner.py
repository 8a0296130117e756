"""The part of a cleaning that only reads segments nobody writes to, and writes new ones beside them (`Cleaner`).

First the keys of the dirty part are read, as far as the memory for them reaches; then group after group of segments is
copied without what is superseded. Nothing here knows the log: it may be done in any thread, or in another process.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from pykbroker.protocol.records.batch import RecordBatch, RecordBatchHeader, decode_header, record_keys
from pykbroker.protocol.records.errors import InvalidRecords
from pykbroker.protocol.records.record_parts import WITHOUT_KEY

from ..files.disk import Buffer
from ..files.errors import CorruptLog, StorageError
from ..segments.batch_scan import scan_batches
from ..segments.segment import LOG_SUFFIX, LogSegment
from ..segments.transaction_index import AbortedTransaction
from ..segments.verification import ExtentCheck
from .cleaned_transactions import CleanedTransactionMetadata, find_aborted_transactions
from .cleaning_task import CleaningTask, Progress, Uncleanable
from .key_offsets import KeyOffsetMap
from .live_offsets import LiveOffsets
from .record_filter import RecordFilter, empty_batch

_WRITE_BYTES = 1024 * 1024


class SegmentCleaner:
    """The cleaner that works in this thread."""

    def __init__(self, task: CleaningTask, progress: Progress) -> None:
        self._task = task
        self._first_dirty = task.first_dirty_offset
        self._segments = task.cleanable_segments
        self._progress = progress
        self._filter: RecordFilter | None = None

    # Reading the keys

    def read_keys(self) -> int:
        task = self._task
        aborted = find_aborted_transactions(task.segments, task.end_offset, self._progress)
        dirty_offsets = task.end_offset - task.first_dirty_offset
        keys = KeyOffsetMap(
            memory_bytes=task.config.memory_bytes,
            load_factor=task.config.load_factor,
            expected_keys=dirty_offsets,
            reserved_bytes=dirty_offsets,
        )
        live = LiveOffsets(self._first_dirty, task.config.memory_bytes - keys.size_bytes)
        self._read_keys(keys, live, aborted)
        if keys.latest_offset < self._first_dirty:
            raise Uncleanable(f"the keys at offset {self._first_dirty} do not fit into log.cleaner.dedupe.buffer.size")
        self._filter = RecordFilter(
            keys,
            live,
            CleanedTransactionMetadata(aborted),
            task.producers,
            now_ms=task.now_ms,
            horizon_ms=task.horizon_ms,
            delete_retention_ms=task.log_config.delete_retention_ms,
        )
        return keys.latest_offset + 1

    def _read_keys(self, keys: KeyOffsetMap, live: LiveOffsets, aborted: Sequence[AbortedTransaction]) -> None:
        transactions = CleanedTransactionMetadata(aborted, self._first_dirty)
        ends = [each.base_offset for each in self._segments[1:]] + [self._task.end_offset]
        for segment, next_offset in zip(self._segments, ends, strict=True):
            if next_offset <= self._first_dirty:
                continue
            position = segment.position_near(self._first_dirty)
            with _damage_in(segment):
                for batch in self._batches(segment, position):
                    if batch.header.last_offset < self._first_dirty:
                        continue
                    batch.ensure_valid()
                    if not self._read_keys_of(batch, keys, live, transactions):
                        return
                    keys.latest_offset = batch.header.last_offset
            # Behind the last batch there may be a hole.
            keys.latest_offset = next_offset - 1

    def _read_keys_of(
        self, batch: RecordBatch, keys: KeyOffsetMap, live: LiveOffsets, transactions: CleanedTransactionMetadata
    ) -> bool:
        """False where the keys do not fit any more."""
        header = batch.header
        if header.is_control:
            transactions.may_drop_control(batch)
            return True
        if transactions.may_drop_data(header):
            return True
        found = record_keys(batch)
        offsets = [header.base_offset + delta for delta in found.offset_deltas]
        if header.base_offset >= self._first_dirty:
            live.add(header.base_offset, header.last_offset, found.offset_deltas, found.kinds)
        if WITHOUT_KEY in found.kinds or min(offsets, default=0) < self._first_dirty:
            pairs = [
                (key, offset)
                for key, offset in zip(found.keys, offsets, strict=True)
                if key is not None and offset >= self._first_dirty
            ]
            superseded = keys.put([key for key, _ in pairs], [offset for _, offset in pairs])
        else:
            superseded = keys.put(cast(list[bytes], found.keys), offsets)
        if superseded is None:
            return False
        live.supersede(superseded)
        return True

    def _batches(self, segment: LogSegment, position: int = 0) -> Iterator[RecordBatch]:
        """Iterate over the batches and check each: what is damaged must not be copied under a new checksum."""
        end = segment.size
        for at, batch in scan_batches(segment.file, position, end):
            yield batch
            position = at + batch.header.size_bytes
            self._progress(batch.header.size_bytes)
        if position != end:
            raise CorruptLog(f"{segment.path(LOG_SUFFIX)} has no batch at position {position}")

    # Copying what stays

    def clean(self, group: Sequence[LogSegment]) -> LogSegment:
        for each in group:
            self._check(each)
        segment = self._task.new_segment(group)
        try:
            segment.create()
            self._copy(group, segment)
            segment.make_inactive()
            segment.sync()
            segment.sync_indexes()
        except StorageError:
            segment.delete()
            raise
        return segment

    def _check(self, segment: LogSegment) -> None:
        """A wrong offset or epoch would be copied, and count as this process's own."""
        extents = segment.extents
        if extents is not None and not extents.is_complete:
            ExtentCheck(segment, extents, self._task.epochs, 0, extents.end, may_have_holes=True).run()

    def _copy(self, group: Sequence[LogSegment], target: LogSegment) -> None:
        """The group's last batch stays, empty if it must be, so that the new segment tells where it ends."""
        assert self._filter is not None, "read_keys() comes first"
        writer = _SegmentWriter(target, self._progress)
        self._filter.begin_segment(target.transaction_index)
        last_dropped: RecordBatchHeader | None = None
        for segment in group:
            with _damage_in(segment):
                for batch in self._batches(segment):
                    kept = self._filter.clean(batch)
                    last_dropped = batch.header if kept is None else None
                    if kept is not None:
                        writer.write(kept)
        if last_dropped is not None:
            writer.write(empty_batch(last_dropped))
        writer.flush()


@contextmanager
def _damage_in(segment: LogSegment) -> Iterator[None]:
    try:
        yield
    except InvalidRecords as error:
        raise CorruptLog(f"{segment.path(LOG_SUFFIX)}: {error.message}") from error


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
            self._segment.note_recovered(decode_header(batch))
        self._progress(self._waiting_bytes)
        self._waiting, self._waiting_bytes = [], 0
