"""One partition's log: segments, offsets, epochs and producers together (`UnifiedLog`).

Appends come in order from one task and are written to the page cache; `flush` makes them durable and may run in a
thread beside appends and reads. Here it is appended, rolled, truncated and flushed; which segments there are is kept in
`log_segments`, and what they hold is found by `log_reads`. What may be read by whom (high watermark, last stable
offset) is the replica's business; which segments are old is decided in `retention`, and what takes the place of
segments in `compaction`.
"""

import posixpath
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import takewhile
from random import Random
from typing import NamedTuple

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    TIMESTAMP_TYPE_MASK,
    RecordBatch,
    encode_batch_prefix,
)
from pykbroker.protocol.records.checking import CheckBudget

from ..files.disk import Buffer, Disk
from ..files.errors import DiskFailed, FileError, NoRoom, OffsetOutOfRange
from ..files.flush_turns import FlushTurns
from ..files.steps import Steps, run_steps
from ..producers.producer_entry import BatchMetadata
from ..producers.producer_replay import update_producers
from ..producers.producer_state import ProducerStateManager
from ..segments import leader_epochs
from ..segments.leader_epochs import UNDEFINED_EPOCH, EpochEntry, LeaderEpochs
from ..segments.log_config import LogConfig
from ..segments.log_evidence import LogEvidence
from ..segments.retention import expired_segments
from ..segments.segment import CLEANED_SUFFIX, LogSegment, TimestampAndOffset
from ..segments.transaction_index import AbortedTransaction
from ..segments.transaction_markers import find_marker
from ..segments.trusted_batches import coordinator_batches, replicated_batches, runs_for_segments
from ..segments.validation import CheckedBatch, check_client_batch
from ..segments.verification import NotVerified
from .log_names import LogNames
from .log_reads import LogReads, LogSlice
from .log_segments import LogSegments
from .log_state import LogState
from .recovery import LogLoader
from .recovery_progress import RecoveryProgress
from .segment_replacement import SegmentReplacement
from .timestamp_confirmation import TimestampConfirmation
from .truncation import LogParts, Truncation, TruncationOfAll, TruncationOfEpochs, TruncationOfRecords

__all__ = [
    "AppendOrigin",
    "AppendResult",
    "Log",
    "LogConfig",
    "OffsetOutOfRange",
    "TimestampAndOffset",
]

PRODUCER_ID_EXPIRATION_MS = 24 * 60 * 60 * 1000


class AppendOrigin(Enum):
    """The maker of the records: a client's are checked to the last bit, a coordinator's are our own."""

    CLIENT = 0
    COORDINATOR = 1


class AppendResult(NamedTuple):
    """The offsets that an append was given, and the size of its batch.

    log_append_time_ms: -1 unless the topic uses it; of a duplicate the largest timestamp of its batch.
    is_duplicate: an idempotent producer has sent the batch before, and the offsets are those of then.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    size_bytes: int
    is_duplicate: bool = False


class Log(LogState):
    """The log of one partition in its directory. Made by `open`; one process and one caller at a time may have it."""

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
        has_been_compacted: bool,
        are_names_durable: bool,
        rng: Random | None,
    ) -> None:
        super().__init__(
            log_start_offset=log_start_offset, log_end_offset=log_end_offset, recovery_point=recovery_point
        )
        self.directory = directory
        self.config = config
        self.producers = producers
        self._has_been_compacted = has_been_compacted
        self._disk = disk
        self._epochs = epochs
        self._segments = LogSegments(segments)
        self._reads = LogReads(self._segments, epochs, may_have_holes=has_been_compacted or config.compact)
        self._rng = rng
        self._roll_jitter_ms = self._draw_jitter_ms()
        self._names = LogNames(disk, directory, are_durable=are_names_durable)
        self._flushes = FlushTurns(disk)
        self.cleaning = disk.turn()
        """Held by the thread that makes new segments for a compaction, or has another process make them."""
        self.before_first_flush: Callable[[], None] = lambda: None
        """Makes durable what the directory holds beside the log, and must not be missing where records are there. It is
        called in front of each flush of records, whatever else of the log is durable already: a recovery leaves durable
        names of a log that has none.
        """
        self._may_have_aborted = not all(segment.transaction_index.is_empty for segment in segments)
        self._replacement = SegmentReplacement(self._segments, producers)
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
        recovery_point: int | None = None,
        high_watermark: int | None = 0,
        clean_shutdown: bool = False,
        machine_stayed_up: bool = False,
        has_been_compacted: bool = False,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        rng: Random | None = None,
        progress: RecoveryProgress | None = None,
    ) -> "Log":
        """Open or create, and recover what a crash left.

        log_start_offset, recovery_point, high_watermark: from the directory's checkpoints. clean_shutdown: whether the
        process that had the log said at its end that everything is in its place. machine_stayed_up: since then.
        has_been_compacted: so that there may be holes. rng: for `segment.jitter.ms`.
        Raises `CorruptLog`, `FileError`, and `RecoveryStopped` where `progress` says so.
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
            evidence=LogEvidence(recovery_point, high_watermark, machine_stayed_up, clean_shutdown),
            has_been_compacted=has_been_compacted,
            now_ms=now_ms,
            progress=progress or RecoveryProgress(_never),
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
            has_been_compacted=has_been_compacted,
            are_names_durable=loaded.are_names_durable,
            rng=rng,
        )

    def update_config(self, config: LogConfig) -> None:
        """The topic's settings have changed; indexes keep the sizes they were opened with."""
        self.config = config
        self._note_holes()

    def _note_holes(self) -> None:
        self._reads.may_have_holes = self._has_been_compacted or self.config.compact

    # State

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def segments(self) -> Sequence[LogSegment]:
        """The segments in order of their offsets; the last one is active."""
        return self._segments.all

    @property
    def first_unstable_offset(self) -> int | None:
        """The offset at which the earliest open transaction begins, or the log where that is deleted in part."""
        offset = self.producers.first_unstable_offset
        return None if offset is None else max(offset, self.log_start_offset)

    def first_undecided_offset(self, high_watermark: int) -> int | None:
        """Return `first_unstable_offset`, but with transactions whose marker is not below the high watermark.

        A reader of committed records stops here.
        """
        offset = self.producers.first_undecided_offset(high_watermark)
        return None if offset is None else max(offset, self.log_start_offset)

    @property
    def latest_epoch(self) -> int | None:
        return self._epochs.latest_epoch

    @property
    def earliest_epoch(self) -> int:
        """The leader epoch at the log's start, -1 where none is known: messages of the old formats have none."""
        earliest = self._epochs.earliest
        is_known = earliest is not None and earliest.start_offset <= self.log_start_offset
        return earliest.epoch if earliest is not None and is_known else UNDEFINED_EPOCH

    @property
    def epochs(self) -> list[EpochEntry]:
        return self._epochs.entries

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
        checked: CheckedBatch | None = None,
    ) -> AppendResult:
        """Give the batch its offsets and write it. Raises `ApiError`, `FileError`; then nothing has changed.

        A client's batch is checked first: checksum, sizes, every record, timestamps, the producer's epoch and sequence.
        Then base offset and leader epoch are patched, which the checksum does not cover. `RecordValidationError`, an
        `ApiError`, names the records at fault.

        checked: what the check of a client's batch has found, where that was made before.
        """
        if origin is AppendOrigin.COORDINATOR:
            return self._append_own(records, leader_epoch, now_ms)
        if checked is None:
            checked = check_client_batch(records, self.config, now_ms)
        elif checked.attributes & TIMESTAMP_TYPE_MASK:
            checked = checked._replace(max_timestamp=now_ms)
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
            rewritten = checked.rewritten(records, base_offset, leader_epoch)
            parts = (rewritten,)
            size = len(rewritten)
        max_timestamp = checked.max_timestamp
        active = self._make_room(size, last_offset, max_timestamp, now_ms)
        position = active.size
        active.append(parts, size, last_offset, max_timestamp)
        self._epochs.assign(leader_epoch, base_offset)
        if header.producer_id >= 0:
            self.producers.update(header, base_offset, max_timestamp)
        self._segments.note_batch(base_offset, position)
        self.log_end_offset = self.producers.end_offset = last_offset + 1
        append_time_ms = max_timestamp if checked.attributes & TIMESTAMP_TYPE_MASK else -1
        return AppendResult(base_offset, last_offset, append_time_ms, self.log_start_offset, size)

    def _answer_duplicate(self, duplicate: BatchMetadata, size: int) -> AppendResult:
        """The append time is the largest timestamp of the batch, whatever the topic uses, as in Kafka."""
        return AppendResult(
            duplicate.first_offset,
            duplicate.last_offset,
            duplicate.timestamp,
            self.log_start_offset,
            size,
            is_duplicate=True,
        )

    def _append_own(self, records: Buffer | None, leader_epoch: int, now_ms: int) -> AppendResult:
        """Batches of a coordinator on this node, control batches among them."""
        batches = coordinator_batches(records, self.config)
        self._check_producers(batches)
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

    def _check_producers(self, batches: Sequence[RecordBatch]) -> None:
        for header, data in batches:
            if not header.has_producer_id:
                continue
            self.producers.check_epoch(header)
            marker = find_marker(data) if header.is_control else None
            if marker is not None:
                self.producers.check_marker(header, marker)

    def _append_control(self, batch: RecordBatch, leader_epoch: int, now_ms: int) -> None:
        base_offset = self.log_end_offset
        header = batch.header._replace(base_offset=base_offset, partition_leader_epoch=leader_epoch)
        prefix = encode_batch_prefix(base_offset, header.batch_length, leader_epoch, header.crc)
        active = self._make_room(header.size_bytes, header.last_offset, header.max_timestamp, now_ms)
        position = active.size
        parts = (prefix, batch.data[ATTRIBUTES_OFFSET:])
        active.append(parts, header.size_bytes, header.last_offset, header.max_timestamp)
        self._epochs.assign(leader_epoch, base_offset)
        self._update_producers(RecordBatch(header, batch.data))
        self._segments.note_batch(base_offset, position)
        self.log_end_offset = self.producers.end_offset = header.next_offset

    def _update_producers(self, batch: RecordBatch) -> None:
        aborted = update_producers(self.producers, batch)
        if aborted is not None:
            index = self._segments.active.transaction_index
            if index.is_empty:
                self._names.note_change()
            index.append(aborted)
            self._may_have_aborted = True

    def append_as_follower(
        self, records: Buffer, *, now_ms: int | None = None, max_leader_epoch: int | None = None
    ) -> AppendResult | None:
        """Write batches that have their offsets and epochs already; None where not even one is whole.

        max_leader_epoch: what has a later one, and what is behind it, is not taken.
        Raises `ApiError`: CORRUPT_MESSAGE for a wrong checksum, OFFSET_OUT_OF_RANGE for offsets that are
        there already. Then nothing has changed.
        """
        batches = replicated_batches(records, self.log_end_offset, max_leader_epoch)
        if not batches:
            return None
        first_offset = batches[0].header.base_offset
        for run in runs_for_segments(batches, self.config.segment_bytes):
            self._append_replicated(run, now_ms)
        size = sum(batch.header.size_bytes for batch in batches)
        return AppendResult(first_offset, self.log_end_offset - 1, -1, self.log_start_offset, size)

    def _append_replicated(self, batches: Sequence[RecordBatch], now_ms: int | None) -> None:
        """Append batches of a leader in one write, into one segment."""
        headers = [batch.header for batch in batches]
        size = sum(header.size_bytes for header in headers)
        last_offset = headers[-1].last_offset
        max_timestamp = max(header.max_timestamp for header in headers)
        active = self._segment_for(size, last_offset, max_timestamp, max_timestamp if now_ms is None else now_ms)
        position = active.size
        active.append_batches(batches)
        for batch in batches:
            header = batch.header
            self._epochs.note(header.partition_leader_epoch, header.base_offset)
            self._update_producers(batch)
            self._segments.note_batch(header.base_offset, position)
            self.log_end_offset = self.producers.end_offset = header.next_offset
            position += header.size_bytes

    # Segments

    def _make_room(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> LogSegment:
        """Return the segment that takes the bytes."""
        if size > self.config.segment_bytes:
            raise ApiError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes are more than the topic's segment.bytes of {self.config.segment_bytes}",
            )
        return self._segment_for(size, last_offset, max_timestamp, now_ms)

    def _segment_for(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> LogSegment:
        """The active one, or a new one where that is full; of a batch that is too large for any it is alone there."""
        active = self._segments.active
        if active.should_roll(size, last_offset, max_timestamp, now_ms, self.config, self._roll_jitter_ms):
            self.roll(now_ms)
            return self._segments.active
        return active

    def roll(self, now_ms: int) -> None:
        """Begin a new segment at the log's end; the one before is not durable until `flush`.

        Raises `FileError`; then the log goes on in the old one.
        """
        old = self._segments.active
        if not old.size:
            return
        new = self._new_segment(self.log_end_offset, now_ms)
        old.write_indexes()
        self.producers.take_snapshot(sync=False)
        try:
            new.create()
        except FileError:
            # Batches that still fit may follow in the old segment: none must be found at the same offset.
            self._names.note_change()
            new.delete()
            raise
        old.make_inactive()
        self._segments.roll_to(new)
        new.name_change = self._names.note_change()
        self._roll_jitter_ms = self._draw_jitter_ms()

    def _new_segment(self, base_offset: int, now_ms: int) -> LogSegment:
        return LogSegment(self._disk, self.directory, base_offset, self.config, now_ms)

    def _draw_jitter_ms(self) -> int:
        largest = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return self._rng.randrange(largest) if self._rng is not None and largest > 0 else 0

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        max_offset: int | None = None,
        min_one_batch: bool = True,
        defer_checks: bool = False,
    ) -> LogSlice:
        """Read from the batch that holds `offset`: what lies in one segment, below `max_offset` and in `max_bytes`.

        The first batch comes whole with `min_one_batch`, and not at all where it does not fit otherwise.
        defer_checks: what was not read since the start is to be checked by the caller, perhaps in a thread.
        Raises `OffsetOutOfRange`, `CorruptLog`, and `NotVerified` with `defer_checks`.
        """
        end_offset = self.log_end_offset
        if not self.log_start_offset <= offset <= end_offset:
            raise OffsetOutOfRange(offset, self.log_start_offset, end_offset)
        limit_offset = None if max_offset is None or max_offset >= end_offset else max_offset
        if offset >= (end_offset if limit_offset is None else limit_offset):
            active = self._segments.active
            return LogSlice(active.file, active.size, 0)
        while True:
            try:
                return self._reads.read(offset, limit_offset, max_bytes, min_one_batch, cached_only=defer_checks)
            except NotVerified as unverified:
                if defer_checks:
                    raise
                unverified.check.run()
                unverified.check.accept()

    def aborted_transactions(self, start_offset: int, upper_bound_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that have records between two offsets, and perhaps others beside them.

        A reader of committed records hides what they wrote. The indexes of the segments (`.txnindex`) tell.
        """
        return self._reads.aborted_transactions(start_offset, upper_bound_offset)

    def aborted_transactions_of(self, start_offset: int, records: LogSlice) -> list[AbortedTransaction]:
        """Those that concern what `read` found at the offset."""
        if not self._may_have_aborted:
            return []
        upper_bound_offset = self._reads.upper_bound_of(start_offset, records)
        if upper_bound_offset is None:
            upper_bound_offset = self.log_end_offset
        return self._reads.aborted_transactions(start_offset, upper_bound_offset)

    # Timestamps

    def offset_for_timestamp_steps(self, timestamp: int, budget: CheckBudget) -> Steps[TimestampAndOffset | None]:
        """The first record with this timestamp or a later one. None as well where the log is closed meanwhile."""
        from .timestamp_search import TimestampSearch

        return TimestampSearch(self, self._segments, budget).first_from(timestamp)

    def offset_of_max_timestamp_steps(self, budget: CheckBudget) -> Steps[TimestampAndOffset | None]:
        """The first record that has the largest timestamp of all. None as well where the log is closed meanwhile."""
        from .timestamp_search import TimestampSearch

        return TimestampSearch(self, self._segments, budget).first_of_latest()

    def find_offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """Return the first record with this timestamp (ms) or a later one; None where there is none."""
        return run_steps(self.offset_for_timestamp_steps(timestamp, CheckBudget()))

    def find_offset_of_max_timestamp(self) -> TimestampAndOffset | None:
        """Return the first record that has the largest timestamp of all; None in an empty log."""
        return run_steps(self.offset_of_max_timestamp_steps(CheckBudget()))

    # Truncation

    def begin_truncation(self, offset: int) -> Truncation | None:
        """Begin to forget what is at `offset` and behind, as a follower does that disagrees with its leader.

        Return None where there is nothing. The caller goes through its steps, and ends it, before anybody appends.
        Raises `FileError`.
        """
        if offset >= self.log_end_offset:
            has_more = self._epochs.truncate_from_end(offset)
            return TruncationOfEpochs(self, self._parts, offset) if has_more else None
        if offset < self._segments.first.base_offset:
            return self.begin_anew(offset, now_ms=self._segments.active.created_ms)
        truncation = TruncationOfRecords(self, self._parts, offset)
        truncation.begin(self._segments.all[self._segments.number_of(offset)].base_offset)
        self._epochs.truncate_from_end(offset)
        return truncation

    def begin_anew(self, offset: int, *, now_ms: int) -> Truncation:
        """Begin to forget everything, as `begin_truncation` does: the log will be empty and begin at `offset`."""
        truncation = TruncationOfAll(self, self._parts, offset, lambda: self._new_segment(offset, now_ms))
        truncation.begin(0)
        self._epochs.clear()
        return truncation

    def truncate_to(self, offset: int) -> None:
        """Take the records at `offset` and behind it off the log, at once. Raises `FileError`."""
        truncation = self.begin_truncation(offset)
        if truncation is not None:
            truncation.run()

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """All steps of `begin_anew` at once."""
        self.begin_anew(offset, now_ms=now_ms).run()

    @property
    def _parts(self) -> LogParts:
        return LogParts(
            self._disk,
            self._epochs,
            self._segments,
            self._reads,
            self.producers,
            self._names,
            self._flushes,
            self._replacement,
        )

    def skip_to(self, offset: int, *, now_ms: int) -> None:
        """The log's end moves on without records: where they came from they were compacted away."""
        assert offset > self.log_end_offset
        self._has_been_compacted = True
        self._note_holes()
        self.log_end_offset = self.producers.end_offset = offset
        if self._segments.active.size:
            self.roll(now_ms)
            return
        self._segments.active.delete()
        new = self._new_segment(offset, now_ms)
        new.create()
        self._segments.replace_active(new)
        new.name_change = self._names.note_change()

    # Another directory

    def take_over_state(self, source: "Log") -> None:
        """This is a copy of the source's records, which is out of use from now on: what else it knows is here too."""
        self._epochs.take_over(source._epochs)
        self.producers.take_over(source.producers)
        self.increment_log_start_offset(source.log_start_offset)
        self._has_been_compacted = source._has_been_compacted
        self.update_config(source.config)

    def move_to(self, directory: str, durable_end_offset: int) -> None:
        """The directory has another name now, which `flush` makes durable. Until then no more counts as flushed than
        what is durable elsewhere, below `durable_end_offset`: a power cut may take the name.
        """
        with self._flushes.moving:
            self.recovery_point = min(self.recovery_point, durable_end_offset)
        self.directory = directory
        self._names.move_to(directory)
        self._epochs.move_to(posixpath.join(directory, leader_epochs.FILE_NAME))
        self.producers.move_to(directory)
        self._segments.move_to(directory)

    def increment_log_start_offset(self, offset: int) -> None:
        """Let the log begin at `offset`: records before it are not read any more, and their files go with retention."""
        if self.log_start_offset < offset <= self.log_end_offset:
            self.log_start_offset = offset
            self._epochs.truncate_from_start(offset)

    # Retention

    def timestamps_to_confirm(self, now_ms: int) -> TimestampConfirmation | None:
        """Return what a thread has to read before `delete_old_segments` may find out which segments are old."""
        config = self.config
        if not config.delete or config.retention_ms < 0 or self.is_being_truncated:
            return None
        least_ms = now_ms - config.retention_ms
        due = list(takewhile(lambda segment: segment.latest_ms < least_ms, self._segments.all))
        if all(segment.unconfirmed is None for segment in due):
            return None
        return TimestampConfirmation(self, self._segments, due, least_ms)

    def prepare_deletion(self, high_watermark: int, now_ms: int) -> bool:
        """Roll the active segment where retention says that it is to go, too. Tell whether `make_names_durable` is to
        come before `put_old_segments_aside`, in a thread. Raises `FileError`.
        """
        count = self._count_old_segments(high_watermark, now_ms)
        if count == len(self._segments.all):
            try:
                self.roll(now_ms)
            except NoRoom:
                # The others make room for it.
                count -= 1
                if not count:
                    raise
        return count > self._count_removable(count)

    def put_old_segments_aside(self, high_watermark: int, now_ms: int) -> list[str]:
        """Put the segments out of use that retention says. Returns the files' paths: they are to be removed after
        `file.delete.delay.ms`, in a thread. Raises `FileError`.

        The files are renamed to `.deleted` at once. Slices that were read from them stay readable. Segments stay, too,
        as long as a power cut may still take the name of the one behind them: it would leave none.
        """
        count = self._count_removable(self._count_old_segments(high_watermark, now_ms))
        if not count:
            return []
        self.cancel_replacement()
        segments = self._segments.all
        gone: list[LogSegment] = []
        paths: list[str] = []
        # In the order of the log: a crash that loses the latest renames leaves no hole.
        for segment in segments[:count]:
            try:
                paths += segment.put_aside() + self.producers.put_snapshot_aside(segment.base_offset)
            except NoRoom:
                if not gone:
                    raise
                break
            gone.append(segment)
        self._names.note_change()
        self.increment_log_start_offset(segments[len(gone)].base_offset)
        self._segments.drop_first(len(gone))
        return paths

    def delete_old_segments(self, high_watermark: int, now_ms: int) -> list[str]:
        """All steps of a deletion at once: for a thread, and for logs that nobody else has."""
        if self.prepare_deletion(high_watermark, now_ms):
            self.make_names_durable()
        return self.put_old_segments_aside(high_watermark, now_ms)

    def _count_old_segments(self, high_watermark: int, now_ms: int) -> int:
        """Count what retention says, the active one among them where that is as old as the others."""
        if self.is_being_truncated:
            return 0  # a thread reads them; they are as old in a moment
        segments = self._segments.all
        if self.config.delete and self.config.retention_ms >= 0:
            for segment in segments:
                if segment.latest_ms >= now_ms - self.config.retention_ms:
                    break
                segment.confirm_max_timestamp()
        return expired_segments(
            segments,
            self.config,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )

    def _count_removable(self, count: int) -> int:
        """Count those of the first `count` segments that are in front of one which no power cut takes."""
        segments = self._segments.all
        count = min(count, len(segments) - 1)
        while count and not self._names.is_durable(segments[count].name_change):
            count -= 1
        return count

    # Compaction

    def new_cleaned_segment(self, group: Sequence[LogSegment]) -> LogSegment:
        """Return the segment to be filled with what stays of the group, in a thread or in another process."""
        return LogSegment(
            self._disk,
            self.directory,
            group[0].base_offset,
            self.config,
            group[-1].created_ms,
            name_suffix=CLEANED_SUFFIX,
        )

    def begin_replacement(self, new: LogSegment, old: Sequence[LogSegment]) -> bool:
        """The new segment is whole and durable: from now on recovery lets it take the others' place.

        The names must be durable (`sync_names`) before `finish_replacement`. False where the log does not have the
        old segments any more, or is about to lose some.
        """
        return not self.is_closed and not self.is_being_truncated and self._replacement.begin(new, old)

    def finish_replacement(self, new: LogSegment) -> list[str] | None:
        """Return the paths of the old files, to be removed once the names are durable. None where the replacement was
        cancelled meanwhile.
        """
        return None if self.is_closed else self._replacement.finish(new)

    def cancel_replacement(self) -> None:
        """Cancel a replacement before the log loses segments: a new one must not bring anything back."""
        self._replacement.cancel()

    @property
    def begins_in_segment(self) -> bool:
        """Tell whether the log starts behind the first record that its files have, or may have after a power cut."""
        is_later = self.log_start_offset > self._segments.first.base_offset
        return is_later or (self.log_start_offset > 0 and not self._names.are_durable)

    def sync_names(self) -> None:
        """Make the names of the log's files durable. May run in a thread."""
        self._names.sync()

    # Durability

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    def lacks_flush(self, end_offset: int) -> bool:
        """Tell whether `flush.messages` wants what is below end_offset on the disk, and it is not known to be there."""
        return end_offset - self.recovery_point >= self.config.flush_messages

    def flush(self) -> None:
        """Flush the log: what was appended before the call is durable when it returns, names included.

        The recovery point moves there, last of all. May run in threads, one at a time is carried out. Raises
        `NoRoom`, and `DiskFailed`: once a sync has failed nothing is synced any more, since the next one would find
        nothing wrong with pages that never came to the disk.
        """
        self._in_turn(self._flush)

    def make_names_durable(self) -> None:
        """Make the names durable that the log's files have now. May run in threads; raises as `flush` does."""
        self._in_turn(lambda: self._make_names_durable(self._names.changes))

    def _in_turn(self, step: Callable[[], None]) -> None:
        with self._flushes.turn:
            if self._is_abandoned:
                return
            if self._flushes.failure is not None:
                raise self._flushes.failure
            try:
                step()
            except DiskFailed as failure:
                # In a thread it may find that the log was deleted in the meantime.
                if not self._is_abandoned:
                    self._flushes.failure = failure
                    raise

    @property
    def is_in_threads(self) -> bool:
        """A thread writes to files in the directory, be the log deleted meanwhile."""
        return self._flushes.turn.locked() or self.cleaning.locked()

    def await_threads(self) -> None:
        """Return when what was under way has ended. For threads, and logs that are abandoned."""
        for turn in (self._flushes.turn, self.cleaning):
            with turn:
                pass

    def _flush(self) -> None:
        # What is appended meanwhile may be in part in what follows, and counts for the next flush.
        with self._flushes.moving:
            truncations, is_end_moving = self.truncations, self.is_being_truncated
        end_offset = self.log_end_offset
        recovery_point = self.recovery_point
        unflushed, rolled = self._segments.since(recovery_point), self._segments.rolled
        name_changes = self._names.changes
        if end_offset > recovery_point:
            for segment in unflushed:
                segment.sync()
        if end_offset:
            # A log that never had a record is made anew where it is lost.
            self._make_names_durable(name_changes)
        # What follows may find no room, and the records need it least.
        self._epochs.write(end_offset)
        for segment in rolled:
            segment.sync_indexes()
        self.producers.sync_snapshots()
        self._segments.note_synced(rolled)
        with self._flushes.moving:
            if self.truncations == truncations and not is_end_moving:
                self.recovery_point = max(self.recovery_point, end_offset)

    def _make_names_durable(self, changes: int) -> None:
        self.before_first_flush()
        self._names.sync_changes(changes)

    def close(self) -> None:
        """Flush, and leave everything so that the next start need not look at it.

        Raises `NoRoom`, where the records are durable and the next start has to look; `DiskFailed`.
        """
        if self.is_closed:
            return
        self.is_closed = True
        try:
            self._segments.active.make_inactive()
            if self.producers.end_offset > self.producers.last_snapshot_offset:
                self._segments.note_rolled()
                self.producers.take_snapshot(sync=True)
        except NoRoom:
            self.flush()
            raise
        self.flush()
        if self.log_end_offset:
            # With the epoch that has no records yet, as Kafka leaves it.
            self._epochs.write(self.log_end_offset + 1)
        self.abandon()

    @property
    def lacks_close(self) -> bool:
        """Tell whether `close` has anything to write down."""
        end = self.log_end_offset
        is_known = self.producers.end_offset <= self.producers.last_snapshot_offset and end <= self.recovery_point
        return bool(end) and (not is_known or self._epochs.lacks_write(end + 1))

    def begin_close(self) -> None:
        """Begin to close one of many logs: what it writes is durable when the volume was synced.

        Then `replace_staged` is to follow, and `finish_close` when its names are durable, too. Raises as `close` does.
        """
        self.is_closed = True
        with self._flushes.turn:
            if self._flushes.failure is not None:
                raise self._flushes.failure
            self._segments.active.make_inactive()
            if self.producers.end_offset > self.producers.last_snapshot_offset:
                self.producers.take_snapshot(sync=False)
            if self.log_end_offset:
                self._epochs.stage(self.log_end_offset + 1)
            else:
                self._epochs.write(0)

    def replace_staged(self) -> bool:
        """Tell whether there is a new name."""
        return self._epochs.replace_staged()

    def finish_close(self) -> None:
        """Finish closing. Only the files of records are asked for writes that failed: they were open all the time."""
        with self._flushes.turn:
            if self.log_end_offset > self.recovery_point:
                for segment in self._segments.since(self.recovery_point):
                    segment.check_written()
            self.recovery_point = self.log_end_offset
            self.abandon()

    def abandon(self) -> None:
        """Let go of the files as they are, without a flush: before deletion, or when the disk has failed.

        A flush in a thread ends without a result.
        """
        self.is_closed = self._is_abandoned = True
        self._segments.abandon()

    def remove_expired_producers(self, now_ms: int) -> None:
        self.producers.remove_expired(now_ms)


def _never() -> bool:
    return False
