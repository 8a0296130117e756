"""One partition's log: segments, offsets, epochs and producers together (`UnifiedLog`).

Appends come in order from one task and are written to the page cache; `flush` makes them durable and may run in a
thread beside appends and reads. What may be read by whom (high watermark, last stable offset) is the replica's
business; which segments are old is decided in `retention`, and what
takes the place of segments in `compaction`.
"""

import posixpath
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    RECORD_BATCH_OVERHEAD_BYTES,
    TIMESTAMP_TYPE_MASK,
    RecordBatch,
    RecordBatchHeader,
    TimestampType,
    assemble_batch,
    encode_batch_prefix,
    iter_batches,
)
from pykbroker.protocol.records.errors import InvalidRecords

from . import leader_epochs
from .disk import Buffer, Disk, DiskFile
from .errors import DiskFailed, OffsetOutOfRange
from .leader_epochs import UNDEFINED_EPOCH, LeaderEpochs
from .log_config import LogConfig
from .producer_state import BatchMetadata, ProducerStateManager
from .recovery import LogLoader, replay_producers, update_producers
from .rejection import RecordsRejected
from .retention import expired_segments
from .segment import CLEANED_SUFFIX, SWAP_SUFFIX, LogSegment, TimestampAndOffset, put_aside
from .transaction_markers import find_marker
from .validation import CheckedBatch, check_client_batch

__all__ = [
    "AppendOrigin",
    "AppendResult",
    "Log",
    "LogConfig",
    "LogSlice",
    "OffsetOutOfRange",
    "RecordsRejected",
    "TimestampAndOffset",
]

PRODUCER_ID_EXPIRATION_MS = 24 * 60 * 60 * 1000
_RECENT_BATCHES = 256


class AppendOrigin(Enum):
    """Who made the records: a client's are checked to the last bit, a coordinator's are our own."""

    CLIENT = 0
    COORDINATOR = 1


class AppendResult(NamedTuple):
    """`log_append_time_ms` is -1 unless the topic uses it. A duplicate has the offsets of the first append."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    size_bytes: int
    is_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Whole batches as they lie in a segment; the last one may be cut off. It keeps the file open."""

    file: DiskFile
    position: int
    size: int

    def read(self) -> bytes:
        return self.file.read_at(self.position, self.size)


class Log:
    """Made by `Log.open`."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: LogConfig,
        producers: ProducerStateManager,
        epochs: LeaderEpochs,
        *,
        segments: list[LogSegment],
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        rng: Random | None,
    ) -> None:
        self.directory = directory
        self.config = config
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point
        self._disk = disk
        self._epochs = epochs
        self._segments = segments
        self._active = segments[-1]
        self._rng = rng
        self._roll_jitter_ms = self._draw_jitter_ms()
        self._recent: dict[int, tuple[LogSegment, int]] = {}
        """Where the latest batches are, by base offset: consumers at the end of the log ask for nothing else."""
        self._rolled: list[LogSegment] = []
        """Segments whose indexes are not durable yet."""
        self._is_directory_synced = False
        self.truncations = 0
        """How often records were taken back: whoever worked with them in a thread sees that they may be gone."""
        self._replacement: tuple[LogSegment, list[LogSegment]] | None = None
        """A segment that has its `.swap` names, and those whose place it is about to take."""
        self.is_closed = False
        self._is_abandoned = False

    def __repr__(self) -> str:
        return f"<Log {self.directory} {self.log_start_offset}..{self.log_end_offset}>"

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        config: LogConfig,
        *,
        now_ms: int,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        clean_shutdown: bool = False,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        rng: Random | None = None,
    ) -> "Log":
        """Open or create, and recover what a crash left.

        log_start_offset, recovery_point: from the directory's checkpoints. clean_shutdown: whether the process that
        had the log said at its end that everything is in its place. rng: for `segment.jitter.ms`.
        Raises `CorruptLog`, `DiskFailed`.
        """
        producers = ProducerStateManager(disk, directory, expiration_ms=producer_id_expiration_ms)
        epochs = LeaderEpochs(disk, posixpath.join(directory, leader_epochs.FILE_NAME))
        loader = LogLoader(
            disk,
            directory,
            config,
            producers,
            epochs,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
            clean_shutdown=clean_shutdown,
            now_ms=now_ms,
        )
        loaded = loader.load()
        return cls(
            disk,
            directory,
            config,
            producers,
            epochs,
            segments=loaded.segments,
            log_start_offset=max(log_start_offset, loaded.segments[0].base_offset),
            log_end_offset=loaded.next_offset,
            recovery_point=loaded.recovery_point,
            rng=rng,
        )

    def update_config(self, config: LogConfig) -> None:
        """The topic's settings have changed; indexes keep the sizes they were opened with."""
        self.config = config

    # State

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def segments(self) -> Sequence[LogSegment]:
        """In order of their offsets; the last one is active."""
        return self._segments

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the earliest open transaction begins, or the log where that is deleted in part."""
        offset = self.producers.first_unstable_offset
        return None if offset is None else max(offset, self.log_start_offset)

    @property
    def latest_epoch(self) -> int | None:
        return self._epochs.latest_epoch

    @property
    def earliest_epoch(self) -> int:
        """The leader epoch at the log's start, -1 where none is known."""
        earliest = self._epochs.earliest
        return UNDEFINED_EPOCH if earliest is None else earliest.epoch

    def assign_epoch_start_offset(self, leader_epoch: int, start_offset: int) -> None:
        """A leader begins its epoch here, before it has appended anything."""
        self._epochs.assign(leader_epoch, start_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one and the offset where it ends; (-1, -1) where that is not known."""
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # Appending

    def append_as_leader(
        self,
        records: Buffer | None,
        leader_epoch: int,
        now_ms: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendResult:
        """Give the batch its offsets and write it. Raises `RecordsRejected`, `DiskFailed`; then nothing has changed."""
        if origin is AppendOrigin.COORDINATOR:
            return self._append_own(records, leader_epoch, now_ms)
        checked = check_client_batch(records, self.config, now_ms)
        header = checked.header
        if header.producer_id >= 0:
            duplicate = self.producers.check_client_batch(header)
            if duplicate is not None:
                return self._answer_duplicate(duplicate, len(records))  # type: ignore[arg-type]
        assert records is not None
        return self._append_checked(checked, records, leader_epoch, now_ms)

    def _append_checked(self, checked: CheckedBatch, records: Buffer, leader_epoch: int, now_ms: int) -> AppendResult:
        header = checked.header
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if checked.is_unchanged:
            prefix = encode_batch_prefix(base_offset, header.batch_length, leader_epoch, header.crc)
            parts: tuple[Buffer, ...] = (prefix, memoryview(records)[ATTRIBUTES_OFFSET:])
            size = header.size_bytes
        else:
            rewritten = _rewrite(checked, records, base_offset, leader_epoch)
            parts = (rewritten,)
            size = len(rewritten)
        max_timestamp = checked.max_timestamp
        self._make_room(size, last_offset, max_timestamp, now_ms)
        active = self._active
        position = active.size
        active.append(parts, size, last_offset, max_timestamp)
        self._epochs.assign(leader_epoch, base_offset)
        if header.producer_id >= 0:
            self.producers.update(header, base_offset, max_timestamp)
        self._advance(base_offset, position, last_offset + 1)
        append_time_ms = max_timestamp if checked.attributes & TIMESTAMP_TYPE_MASK else -1
        return AppendResult(base_offset, last_offset, append_time_ms, self.log_start_offset, size)

    def _answer_duplicate(self, duplicate: BatchMetadata, size: int) -> AppendResult:
        is_append_time = self.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        return AppendResult(
            duplicate.first_offset,
            duplicate.last_offset,
            duplicate.timestamp if is_append_time else -1,
            self.log_start_offset,
            size,
            is_duplicate=True,
        )

    def _append_own(self, records: Buffer | None, leader_epoch: int, now_ms: int) -> AppendResult:
        """Batches of a coordinator on this node, control batches among them."""
        try:
            batches = list(iter_batches(records or b""))
        except InvalidRecords as error:
            raise RecordsRejected(error.error_code, error.message) from error
        if not batches:
            raise RecordsRejected(ErrorCode.INVALID_RECORD, "nothing to append")
        for header, _ in batches:
            if header.size_bytes > self.config.max_message_bytes:
                raise RecordsRejected(
                    ErrorCode.MESSAGE_TOO_LARGE, f"the batch has {header.size_bytes} bytes, more than max.message.bytes"
                )
        self._check_markers(batches)
        first_offset = self.log_end_offset
        for batch in batches:
            header = batch.header
            if header.is_control:
                self._append_control(batch, leader_epoch, now_ms)
            else:
                checked = CheckedBatch(header, header.attributes, header.max_timestamp, None)
                self._append_checked(checked, batch.data, leader_epoch, now_ms)
        size = sum(batch.header.size_bytes for batch in batches)
        return AppendResult(first_offset, self.log_end_offset - 1, -1, self.log_start_offset, size)

    def _check_markers(self, batches: Sequence[RecordBatch]) -> None:
        for header, data in batches:
            marker = find_marker(data) if header.is_control and header.has_producer_id else None
            if marker is not None:
                self.producers.check_marker(header, marker)

    def _append_control(self, batch: RecordBatch, leader_epoch: int, now_ms: int) -> None:
        base_offset = self.log_end_offset
        header = batch.header._replace(base_offset=base_offset, partition_leader_epoch=leader_epoch)
        prefix = encode_batch_prefix(base_offset, header.batch_length, leader_epoch, header.crc)
        self._make_room(header.size_bytes, header.last_offset, header.max_timestamp, now_ms)
        position = self._active.size
        parts = (prefix, batch.data[ATTRIBUTES_OFFSET:])
        self._active.append(parts, header.size_bytes, header.last_offset, header.max_timestamp)
        self._epochs.assign(leader_epoch, base_offset)
        update_producers(self.producers, RecordBatch(header, batch.data))
        self._advance(base_offset, position, header.next_offset)

    def append_as_follower(self, records: Buffer, *, now_ms: int | None = None) -> AppendResult | None:
        """Write batches that have their offsets and epochs already; None where not even one is whole.

        Raises `RecordsRejected`: CORRUPT_MESSAGE for a wrong checksum, OFFSET_OUT_OF_RANGE for offsets that are
        there already. Then nothing has changed.
        """
        try:
            batches = list(iter_batches(records, allow_partial=True))
            for batch in batches:
                batch.ensure_valid()
        except InvalidRecords as error:
            raise RecordsRejected(error.error_code, error.message) from error
        if not batches:
            return None
        self._check_offsets(batches)
        headers = [batch.header for batch in batches]
        size = sum(header.size_bytes for header in headers)
        last_offset = headers[-1].last_offset
        max_timestamp = max(header.max_timestamp for header in headers)
        self._make_room(size, last_offset, max_timestamp, max_timestamp if now_ms is None else now_ms)
        position = self._active.size
        self._active.append_batches(batches)
        for batch in batches:
            header = batch.header
            self._assign_epoch_of(header)
            update_producers(self.producers, batch)
            self._advance(header.base_offset, position, header.next_offset)
            position += header.size_bytes
        return AppendResult(headers[0].base_offset, last_offset, -1, self.log_start_offset, size)

    def _check_offsets(self, batches: Sequence[RecordBatch]) -> None:
        next_offset = self.log_end_offset
        for header, _ in batches:
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                raise RecordsRejected(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"a batch with offsets {header.base_offset} to {header.last_offset} cannot be at {next_offset}",
                )
            next_offset = header.next_offset

    def _assign_epoch_of(self, header: RecordBatchHeader) -> None:
        epoch = header.partition_leader_epoch
        latest = self._epochs.latest_epoch
        if epoch >= 0 and (latest is None or epoch > latest):
            self._epochs.assign(epoch, header.base_offset)

    def _advance(self, base_offset: int, position: int, next_offset: int) -> None:
        recent = self._recent
        if len(recent) >= _RECENT_BATCHES:
            del recent[next(iter(recent))]
        recent[base_offset] = (self._active, position)
        self.log_end_offset = self.producers.end_offset = next_offset

    # Segments

    def _make_room(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        if size > self.config.segment_bytes:
            raise RecordsRejected(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes are more than the topic's segment.bytes of {self.config.segment_bytes}",
            )
        active = self._active
        if active.should_roll(size, last_offset, max_timestamp, now_ms, self.config, self._roll_jitter_ms):
            self.roll(now_ms)

    def roll(self, now_ms: int) -> None:
        """Begin a new segment at the log's end; the one before is not durable until `flush`."""
        if not self._active.size:
            return
        old = self._active
        new = LogSegment(self._disk, self.directory, self.log_end_offset, self.config, now_ms)
        new.create()
        old.make_inactive()
        self.producers.take_snapshot(sync=False)
        self._rolled.append(old)
        self._is_directory_synced = False
        self._segments.append(new)
        self._active = new
        self._roll_jitter_ms = self._draw_jitter_ms()

    def _draw_jitter_ms(self) -> int:
        largest = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return self._rng.randrange(largest) if self._rng is not None and largest > 0 else 0

    def _segment_of(self, offset: int) -> int:
        """The number of the last segment that begins at or before `offset`."""
        if offset >= self._active.base_offset:
            return len(self._segments) - 1
        return max(bisect_right(self._segments, offset, key=_base_offset) - 1, 0)

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, max_offset: int | None = None, min_one_batch: bool = True
    ) -> LogSlice:
        """From the batch that holds `offset`, what lies in one segment, below `max_offset` and in `max_bytes`.

        The first batch comes whole with `min_one_batch`, and not at all where it does not fit otherwise.
        Raises `OffsetOutOfRange`.
        """
        end_offset = self.log_end_offset if max_offset is None else min(max_offset, self.log_end_offset)
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.log_end_offset)
        if offset >= end_offset:
            return LogSlice(self._active.file, self._active.size, 0)
        segment, position = self._recent.get(offset) or self._find(offset)
        available = self._end_position(segment, end_offset) - position
        if available > max_bytes:
            first_size = segment.header_at(position).size_bytes
            if first_size > max_bytes:
                max_bytes = first_size if min_one_batch else 0
        return LogSlice(segment.file, position, max(min(available, max_bytes), 0))

    def _find(self, offset: int) -> tuple[LogSegment, int]:
        for segment in self._segments[self._segment_of(offset) :]:
            found = segment.find_batch(offset)
            if found is not None:
                return segment, found[0]
        # Everything from here to the log's end was compacted away.
        return self._active, self._active.size

    def _end_position(self, segment: LogSegment, end_offset: int) -> int:
        """Where the batches below `end_offset` end in this segment."""
        if end_offset == self.log_end_offset:
            return segment.size
        end_segment, end_position = self._recent.get(end_offset) or self._find(end_offset)
        if end_segment is segment:
            return end_position
        return segment.size if end_segment.base_offset > segment.base_offset else 0

    def find_offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record with this timestamp or a later one."""
        for segment in self._segments:
            if segment.max_timestamp >= timestamp:
                found = segment.find_timestamp(timestamp, self.log_start_offset)
                if found is not None:
                    return found
        return None

    def find_offset_of_max_timestamp(self) -> TimestampAndOffset | None:
        """The first record that has the largest timestamp of all."""
        segment = max(self._segments, key=_max_timestamp)
        return segment.find_max_timestamp() if segment.max_timestamp >= 0 else None

    # Truncation

    def truncate_to(self, offset: int) -> None:
        """Forget what is at `offset` and behind, as a follower does that disagrees with its leader."""
        if offset >= self.log_end_offset:
            return
        self.truncations += 1
        self.cancel_replacement()
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset, now_ms=self._active.created_ms)
            return
        self._recent.clear()
        while self._segments[-1].base_offset > offset:
            self._segments.pop().delete()
        active = self._active = self._segments[-1]
        active.make_active()
        active.truncate_to(offset)
        self._rolled = [segment for segment in self._rolled if segment in self._segments[:-1]]
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self._epochs.truncate_from_end(offset)
        self._reload_producers(offset, active.created_ms)

    def _reload_producers(self, end_offset: int, now_ms: int) -> None:
        self.producers.load_latest_snapshot(self.log_start_offset, end_offset, now_ms)
        replay_producers(self.producers, self._segments, end_offset)

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Forget everything: the log is empty and begins at `offset`."""
        self.truncations += 1
        self.cancel_replacement()
        self._recent.clear()
        for segment in self._segments:
            segment.delete()
        self._active = LogSegment(self._disk, self.directory, offset, self.config, now_ms)
        self._active.create()
        self._segments = [self._active]
        self._rolled = []
        self._is_directory_synced = False
        self._epochs.clear()
        for snapshot_offset in self.producers.snapshot_offsets():
            self.producers.remove_snapshot(snapshot_offset)
        self.producers.clear(offset)
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset

    def increment_log_start_offset(self, offset: int) -> None:
        """Records before `offset` are not there any more; their files go with retention."""
        if self.log_start_offset < offset <= self.log_end_offset:
            self.log_start_offset = offset
            self._epochs.truncate_from_start(offset)

    # Retention

    def delete_old_segments(self, high_watermark: int, now_ms: int) -> list[str]:
        """Put the segments out of use that `retention` says. Returns the files' paths: they are to be removed after
        `file.delete.delay.ms`, in a thread. Raises `DiskFailed`.
        """
        count = expired_segments(
            self._segments,
            self.config,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )
        if not count:
            return []
        self.cancel_replacement()
        if count == len(self._segments):
            self.roll(now_ms)
        gone = self._segments[:count]
        self.increment_log_start_offset(self._segments[count].base_offset)
        del self._segments[:count]
        self._rolled = [segment for segment in self._rolled if segment not in gone]
        self._recent = {offset: found for offset, found in self._recent.items() if found[0] not in gone}
        # In the order of the log: a crash that loses the latest renames leaves no hole.
        return [path for segment in gone for path in self._put_aside(segment)]

    def _put_aside(self, segment: LogSegment) -> list[str]:
        paths = segment.put_aside()
        snapshot = self.producers.snapshot_path(segment.base_offset)
        if self._disk.exists(snapshot):
            paths.append(put_aside(self._disk, snapshot))
        return paths

    # Compaction

    def new_cleaned_segment(self, group: Sequence[LogSegment]) -> LogSegment:
        """To be filled with what stays of the group, in a thread."""
        segment = LogSegment(
            self._disk,
            self.directory,
            group[0].base_offset,
            self.config,
            group[-1].created_ms,
            name_suffix=CLEANED_SUFFIX,
        )
        segment.create()
        return segment

    def begin_replacement(self, new: LogSegment, old: Sequence[LogSegment]) -> bool:
        """The new segment is whole and durable: from now on recovery lets it take the others' place.

        The names must be durable (`sync_names`) before `finish_replacement`. False where the log does not have the
        old segments any more.
        """
        if self.is_closed or not self._has(old):
            return False
        new.rename(SWAP_SUFFIX)
        self._replacement = (new, list(old))
        return True

    def finish_replacement(self, new: LogSegment) -> list[str] | None:
        """Returns the paths of the old files, to be removed once the names are durable. None where the replacement was
        cancelled meanwhile.
        """
        if self.is_closed or self._replacement is None or self._replacement[0] is not new:
            return None
        old = self._replacement[1]
        self._replacement = None
        assert self._has(old), "whoever removes inactive segments cancels first"
        # The snapshot at the first base offset stays of use.
        paths = old[0].put_aside()
        for segment in old[1:]:
            paths += self._put_aside(segment)
        new.rename("")
        first = self._segments.index(old[0])
        self._segments[first : first + len(old)] = [new]
        self._rolled = [segment for segment in self._rolled if segment not in old]
        self._recent = {offset: found for offset, found in self._recent.items() if found[0] not in old}
        return paths

    def cancel_replacement(self) -> None:
        """Before the log loses segments: a new one must not bring anything back."""
        replacement, self._replacement = self._replacement, None
        if replacement is not None:
            replacement[0].delete()

    def _has(self, segments: Sequence[LogSegment]) -> bool:
        """As neighbours, and none of them active."""
        if segments[0] not in self._segments:
            return False
        first = self._segments.index(segments[0])
        return self._segments[first:-1][: len(segments)] == list(segments)

    def sync_names(self) -> None:
        """May run in a thread."""
        self._disk.sync_directory(self.directory)

    # Durability

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    def flush(self) -> None:
        """Everything appended before the call is durable when it returns; the recovery point moves there."""
        try:
            self._flush()
        except DiskFailed:
            # In a thread it may find that the log was deleted in the meantime.
            if not self._is_abandoned:
                raise

    def _flush(self) -> None:
        end_offset = self.log_end_offset
        segments = list(self._segments)
        rolled, self._rolled = self._rolled, []
        is_directory_synced, self._is_directory_synced = self._is_directory_synced, True
        self._epochs.write(sync=True)
        first = max(bisect_right(segments, self.recovery_point, key=_base_offset) - 1, 0)
        if end_offset > self.recovery_point:
            for segment in segments[first:]:
                segment.sync()
        for segment in rolled:
            segment.sync_indexes()
        if not is_directory_synced:
            self._disk.sync_directory(self.directory)
            self._disk.sync_directory(posixpath.dirname(self.directory))
        self.recovery_point = max(self.recovery_point, end_offset)

    def close(self) -> None:
        """Flush, and leave everything so that the next start need not look at it."""
        if self.is_closed:
            return
        self.is_closed = True
        self._active.make_inactive()
        if self.producers.end_offset > self.producers.last_snapshot_offset:
            self._rolled.append(self._active)
            self.producers.take_snapshot(sync=True)
        self.flush()
        self.abandon()

    def abandon(self) -> None:
        """Let go of the files as they are, without a flush: before deletion, or when the disk has failed."""
        self.is_closed = self._is_abandoned = True
        self._recent.clear()
        for segment in self._segments:
            segment.close()

    def remove_expired_producers(self, now_ms: int) -> None:
        self.producers.remove_expired(now_ms)


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset


def _max_timestamp(segment: LogSegment) -> int:
    return segment.max_timestamp


def _rewrite(checked: CheckedBatch, records: Buffer, base_offset: int, leader_epoch: int) -> bytes:
    """The batch with the header that validation asks for, and perhaps other compression."""
    header = checked.header
    payload = memoryview(records)[RECORD_BATCH_OVERHEAD_BYTES:] if checked.payload is None else checked.payload
    return assemble_batch(
        payload,
        base_offset=base_offset,
        partition_leader_epoch=leader_epoch,
        attributes=checked.attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=checked.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        records_count=header.records_count,
    )
