"""Opening a log: which of its files to trust, and what to make of those that cannot be trusted (`LogLoader`).

After a clean shutdown a look at the ends is enough. Otherwise every batch from the recovery point's segment on is
checked, the first one that is torn or out of order ends the log, and indexes, epochs and producers are built anew.
What `log_evidence` says was there is never cut off: such a log is damaged, and its files stay as they are.
What was found that way is made durable before the log is used.
"""

import logging
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from pykbroker.protocol.records.batch import (
    MAGIC_VALUE_V2,
    NO_PARTITION_LEADER_EPOCH,
    LegacyMessage,
    RecordBatch,
    RecordBatchHeader,
)
from pykbroker.protocol.records.errors import InvalidRecords

from ..files.disk import Disk
from ..files.errors import CorruptLog
from ..producers.producer_replay import batches_with_producers, replay_producers, update_producers
from ..producers.producer_state import ProducerStateManager
from ..segments import leader_epochs
from ..segments.batch_scan import count_sound_batches, is_torn, is_zero, lacks_bytes, scan_batches, scan_headers
from ..segments.indexes import MAX_RELATIVE_OFFSET
from ..segments.leader_epochs import LeaderEpochs
from ..segments.log_config import LogConfig
from ..segments.log_evidence import LogEvidence, Tail, check_end, check_tail
from ..segments.rebuilt_transaction_index import RebuiltTransactionIndex
from ..segments.replacements import complete_replacements
from ..segments.segment import (
    LOG_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    LogSegment,
)
from ..segments.segment_names import base_offsets
from ..segments.verified_extents import VerifiedExtents
from .recovery_progress import RecoveryProgress
from .transaction_index_recovery import load_transaction_indexes

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class LoadedLog:
    """`segments` is never empty; the last one is active. are_names_durable: of its files and of its directory."""

    segments: list[LogSegment]
    next_offset: int
    recovery_point: int
    are_names_durable: bool


class LogLoader:
    """The loader of one log. `producers` and `epochs` are filled on the way."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: LogConfig,
        producers: ProducerStateManager,
        epochs: LeaderEpochs,
        *,
        log_start_offset: int,
        evidence: LogEvidence,
        has_been_compacted: bool,
        now_ms: int,
        progress: RecoveryProgress,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._config = config
        self._producers = producers
        self._epochs = epochs
        self._log_start_offset = log_start_offset
        self._evidence = evidence
        self._checkpointed_offset = max(evidence.recovery_point, evidence.high_watermark or 0)
        self._may_have_holes = has_been_compacted or config.compact
        self._now_ms = now_ms
        self._progress = progress
        self._has_cut = False

    def load(self) -> LoadedLog:
        if not self._disk.is_directory(self._directory):
            self._disk.make_directory(self._directory)
        names = complete_replacements(self._disk, self._directory)
        with self._producers.knowing_files(names):
            return self._load(names)

    def _load(self, names: Sequence[str]) -> LoadedLog:
        knows_epochs = self._load_epochs(names)
        segments = [
            self._segment(base_offset)
            for base_offset in base_offsets(self._disk, self._directory, names, self._evidence)
        ]
        if segments:
            # Retention moves the start without a checkpoint.
            self._log_start_offset = max(self._log_start_offset, segments[0].base_offset)
        self._check_start(segments)
        suspect_from = self._first_suspect(segments)
        next_offset = None
        are_names_durable = False
        if segments and suspect_from == len(segments):
            next_offset = segments[-1].make_active()
            if next_offset is None or not self._is_end_expected(next_offset):
                suspect_from = self._segment_of_recovery_point(segments)
            elif not segments[-1].size:
                segments[-1].create_missing_indexes(names)
        if any(name.endswith(TRANSACTION_INDEX_SUFFIX) for name in names):
            load_transaction_indexes(segments[:suspect_from], self._rebuild_transaction_index)
        if not knows_epochs:
            self._rebuild_epochs(segments[:suspect_from])
        if suspect_from < len(segments):
            next_offset = self._recover(segments, suspect_from)
            if self._has_cut or next_offset > self._evidence.recovery_point:
                self._make_durable(segments[suspect_from:])
                are_names_durable = True
        elif next_offset is not None:
            self._load_producers(segments, next_offset)
            # Closing made them so, unless there was nothing to lose.
            are_names_durable = self._evidence.clean_shutdown and next_offset > 0
        self._check_end(next_offset)
        self._await_checks(segments[:suspect_from], segments, next_offset)
        self._complete_epochs(segments)
        for segment in segments:
            segment.close()  # whoever reads or writes opens it again: of thousands of logs most have nothing to do
        if next_offset is None or next_offset < self._log_start_offset:
            segments, next_offset = self._start_anew(segments), self._log_start_offset
            are_names_durable = False
        if self._epochs.truncate_from_end(next_offset) and not self._evidence.clean_shutdown:
            self._epochs.write(next_offset)  # the next start must not expect what is gone
        self._epochs.truncate_from_start(self._log_start_offset)
        self._remove_stray_snapshots(segments)
        recovery_point = min(self._evidence.recovery_point, next_offset)
        if not self._evidence.clean_shutdown:
            self._producers.note_unsynced_snapshots(recovery_point)
        return LoadedLog(segments, next_offset, recovery_point, are_names_durable)

    def _load_epochs(self, names: Sequence[str]) -> bool:
        """False where the file is missing or damaged."""
        if leader_epochs.FILE_NAME not in names:
            return False
        try:
            self._epochs.load(self._evidence.recovery_point)
        except CorruptLog as damage:
            _log.warning("reading the leader epochs from the batches, since their file cannot be used: %s", damage)
            return False
        return True

    def _rebuild_epochs(self, segments: Sequence[LogSegment]) -> None:
        if any(segment.size for segment in segments):
            self._epochs.begin_rebuild()
            for segment in segments:
                for _, header in scan_headers(segment.file, 0, segment.size):
                    self._epochs.note(header.partition_leader_epoch, header.base_offset)

    def _complete_epochs(self, segments: Sequence[LogSegment]) -> None:
        """Add the epochs in front of those that the file has. They are cut off where the log starts, and a crash may
        bring an earlier start back, with its records.
        """
        entries = self._epochs.entries
        if self._evidence.clean_shutdown or not entries or entries[0].start_offset <= self._log_start_offset:
            return
        missing: list[RecordBatchHeader] = []
        for segment in segments:
            for _, header in scan_headers(segment.file, 0, segment.size):
                if header.base_offset >= entries[0].start_offset:
                    break
                missing.append(header)
        if missing:
            self._epochs.begin_rebuild()
            for header in missing:
                self._epochs.note(header.partition_leader_epoch, header.base_offset)
            for entry in entries:
                self._epochs.note(*entry)

    def _await_checks(
        self, trusted: Sequence[LogSegment], segments: Sequence[LogSegment], next_offset: int | None
    ) -> None:
        """Leave the check of what was not read now for the time before it is served."""
        for number, segment in enumerate(trusted):
            is_last = number + 1 == len(segments)
            segment.extents = VerifiedExtents(
                segment.size, next_offset if is_last else segments[number + 1].base_offset
            )

    def _is_end_expected(self, next_offset: int) -> bool:
        """A log that was closed ends where it was flushed to."""
        return self._evidence.flushed_offset in (None, next_offset)

    def _check_end(self, next_offset: int | None) -> None:
        """Raises `CorruptLog` where the log does not come as far as it did."""
        evidence, start = self._evidence, self._log_start_offset
        check_end(self._directory, max(next_offset or 0, start), evidence)
        # A truncation that makes the log begin anew lowers the checkpoints to 0, and then puts segment after segment
        # aside, the last one first: a process that was killed meanwhile has left the first ones.
        if next_offset is not None and next_offset < start and 0 < self._checkpointed_offset < start:
            raise CorruptLog(f"{self._directory} ends at offset {next_offset}, and can not begin at {start}")
        if next_offset is not None and next_offset < (evidence.high_watermark or 0):
            _log.error(
                "%s: the records from offset %d to %d were acknowledged and never flushed; the machine went down, "
                "and they are gone",
                self._directory,
                next_offset,
                (evidence.high_watermark or 0) - 1,
            )

    def _segment(self, base_offset: int) -> LogSegment:
        return LogSegment(self._disk, self._directory, base_offset, self._config, self._now_ms)

    def _check_start(self, segments: Sequence[LogSegment]) -> None:
        """Raises `CorruptLog` where a log that was closed begins later than the leader epochs that it had."""
        entries = self._epochs.entries[:1]
        is_closed = self._evidence.clean_shutdown and self._evidence.flushed_offset is not None
        if is_closed and segments and entries and entries[0].start_offset < segments[0].base_offset:
            raise CorruptLog(
                f"{self._directory} begins at offset {segments[0].base_offset}, but held offset "
                f"{entries[0].start_offset} when it was closed: files are missing"
            )

    def _first_suspect(self, segments: Sequence[LogSegment]) -> int:
        """The number of the first segment whose batches must be checked; their count where there is none."""
        trusted = len(segments)
        if not self._evidence.clean_shutdown:
            trusted = self._segment_of_recovery_point(segments)
        # The active segment is looked at when it is made active.
        for number, segment in enumerate(segments[: min(trusted, len(segments) - 1)]):
            is_unsynced = self._may_have_unsynced_indexes(segments[number + 1])
            if segment.open_inactive(segments[number + 1].base_offset) and (
                not is_unsynced or self._evidence.machine_stayed_up or segment.are_indexes_sound()
            ):
                if is_unsynced:
                    segment.sync_indexes()
                continue
            _log.warning("rebuilding the indexes of %s, which are missing or do not fit it", segment.path(LOG_SUFFIX))
            # First: that the other indexes are missing is what tells that this one may be missing, too.
            self._rebuild_transaction_index(segment, segments[:number])
            next_offset = segment.rebuild_indexes()
            if segment.size != segment.file.size() and not self._trim(segments, number, next_offset):
                return number
            segment.replace_indexes()
        return trusted

    def _may_have_unsynced_indexes(self, following: LogSegment) -> bool:
        """Tell whether a segment was active when it was flushed last, and then rolled: a flush syncs the indexes of
        segments that were rolled before.
        """
        evidence = self._evidence
        return not evidence.clean_shutdown and following.base_offset == evidence.recovery_point

    def _segment_of_recovery_point(self, segments: Sequence[LogSegment]) -> int:
        trusted = sum(segment.base_offset <= self._evidence.recovery_point for segment in segments)
        return max(trusted - 1, 0)

    def _recover(self, segments: list[LogSegment], first: int) -> int:
        """Check every batch from segment `first` on; returns the next offset. Segments behind a torn one go."""
        start = segments[first].base_offset
        self._note_evidence(segments)
        self._load_producers(segments[:first], start, remove_others=False)
        self._progress.begin(sum(segment.file.end_of_data() for segment in segments[first:]))
        next_offset = start
        last_epoch = -1
        for number, segment in enumerate(segments[first:], first):
            if number > first and not self._may_follow(segment, next_offset):
                self._cut_off(segments, number - 1, next_offset, f"the next file begins at {segment.base_offset}")
                break
            next_offset = segment.base_offset
            self._snapshot_at(segment, anew=number > first)
            segment.begin_rebuild()
            aborted = RebuiltTransactionIndex(self._disk, segment.transaction_index)
            size = segment.file.size()
            problem: str | None = None
            for _, batch in scan_batches(segment.file, 0, size):
                problem = self._why_not_next(segments, number, batch, next_offset, last_epoch)
                if problem:
                    break
                self._take_over(segment, batch, aborted)
                next_offset = batch.header.next_offset
                last_epoch = max(last_epoch, batch.header.partition_leader_epoch)
                self._progress.advance(batch.header.size_bytes)
            ends_here = segment.size < size and not self._trim(segments, number, next_offset)
            if ends_here:
                self._cut_off(segments, number, next_offset, problem or "there is no batch")
            aborted.finish()
            if ends_here:
                break
            if number + 1 < len(segments):
                segment.make_inactive()
        segments[-1].count_index_interval_anew()
        self._producers.end_offset = next_offset
        self._remove_unchecked_snapshots(segments, start)
        return next_offset

    def _note_evidence(self, segments: Sequence[LogSegment]) -> None:
        """Note what the log's own files tell of how far it had come.

        After a power cut names may be there without data.
        """
        offsets = [segments[-1].base_offset, *self._producers.snapshot_offsets()]
        latest = self._epochs.entries[-1:]
        offsets += [entry.start_offset for entry in latest]
        if self._evidence.is_nothing_unflushed:
            self._evidence = self._evidence.seen(max(offsets))

    def _why_not_next(
        self, segments: Sequence[LogSegment], number: int, batch: RecordBatch, next_offset: int, last_epoch: int
    ) -> str | None:
        """Offsets go up, with holes where a log was compacted; epochs never go down. Neither is under the checksum:
        where one goes up, what follows must go along. Messages of the old formats have no epoch, and may stand behind
        batches that have: a log's format was a setting once.
        """
        header, segment = batch.header, segments[number]
        if not batch.is_crc_valid:
            return "the checksum is wrong"
        has_epoch = header.magic == MAGIC_VALUE_V2
        if isinstance(batch, LegacyMessage):
            try:
                header = batch.located().header
            except InvalidRecords as error:
                return error.message
        if header.base_offset < next_offset or header.last_offset_delta < 0:
            return f"the batch has the offsets {header.base_offset} to {header.last_offset}"
        if header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            return f"the batch has the offset {header.last_offset}, which is too far away"
        if has_epoch and header.partition_leader_epoch < last_epoch:
            return f"the leader epoch goes back from {last_epoch} to {header.partition_leader_epoch}"
        if has_epoch and (known := self._known_epoch(header)) is not None:
            return f"the batch has the leader epoch {header.partition_leader_epoch}, not {known}"
        is_hole = header.base_offset > next_offset
        if not is_hole and (not has_epoch or last_epoch < 0 or header.partition_leader_epoch == last_epoch):
            return None
        after = segment.size + header.size_bytes
        following = next((each for _, each in scan_batches(segment.file, after, segment.file.size())), None)
        if following is None or not following.is_crc_valid:
            is_confirmed = number + 1 < len(segments) and segments[number + 1].base_offset >= header.next_offset
            if is_hole and not is_confirmed and not self._may_skip(next_offset):
                return f"the batch has the offset {header.base_offset}"
        elif following.header.base_offset < header.next_offset:
            return f"the batch has the offset {header.base_offset}, the one behind it {following.header.base_offset}"
        elif following.header.magic == MAGIC_VALUE_V2 and following.header.partition_leader_epoch < (
            header.partition_leader_epoch
        ):
            return f"the leader epoch goes up to {header.partition_leader_epoch}, and back again behind it"
        return None

    def _known_epoch(self, header: RecordBatchHeader) -> int | None:
        """That of the epochs' file where it contradicts the batch; later epochs than its last one it need not know."""
        known = self._epochs.epoch_for_offset(header.last_offset)
        if known is None or header.partition_leader_epoch in (known, NO_PARTITION_LEADER_EPOCH):
            return None
        is_last = known == self._epochs.latest_epoch
        return None if is_last and header.partition_leader_epoch > known else known

    def _may_skip(self, offset: int) -> bool:
        """Tell whether the log may have gone on behind this offset, as after a follower's truncation within a batch."""
        return self._may_have_holes or not (
            self._evidence.is_nothing_unflushed or offset < (self._evidence.high_watermark or 0)
        )

    def _trim(self, segments: Sequence[LogSegment], number: int, next_offset: int) -> bool:
        """Cut off preallocated zeros behind a segment that was rolled: a power cut may have undone that it was cut to
        its size. False where other bytes are there, or where batches are missing before the next segment.
        """
        segment, size = segments[number], segments[number].file.size()
        follows = number + 1 < len(segments) and segments[number + 1].base_offset == next_offset
        if not follows or not is_zero(segment.file, segment.size, size):
            return False
        _log.info("cutting off %d zeros behind %s, which was full", size - segment.size, segment.path(LOG_SUFFIX))
        segment.cut_off(segment.size)
        segment.sync()
        return True

    def _cut_off(self, segments: list[LogSegment], number: int, next_offset: int, problem: str) -> None:
        """End the log behind the sound batches of segment `number`. Raises `CorruptLog` where that loses too much."""
        segment = segments[number]
        size = segment.file.size()
        sound = count_sound_batches(segment.file, segment.size, size, next_offset)
        for later in segments[number + 1 :]:
            sound += count_sound_batches(later.file, 0, later.file.size(), next_offset)
        has_only_zeros = is_zero(segment.file, segment.size, size)
        was_torn = is_torn(segment.file, segment.size, size, is_preallocated=self._config.preallocate)
        path = segment.path(LOG_SUFFIX)
        lacks = lacks_bytes(segment.file, segment.size, size)
        check_tail(Tail(path, segment.size, next_offset, problem, was_torn, lacks, sound), self._evidence)
        if segment.size < size:
            _log.log(
                logging.INFO if has_only_zeros else logging.WARNING,
                "cutting off %d %s behind offset %d of %s (%s), with %d sound batches",
                size - segment.size,
                "zeros" if has_only_zeros else "bytes",
                next_offset,
                path,
                problem,
                sound,
            )
            segment.cut_off(segment.size)
            self._has_cut = True
        if number + 1 < len(segments):
            self._drop(segments, number + 1, f"it does not follow offset {next_offset}")

    def _remove_unchecked_snapshots(self, segments: Sequence[LogSegment], start: int) -> None:
        """Those of before, from where the batches were checked on.

        Each segment behind the log's start has another one by now. None was taken at the start itself: what is known of
        producers there stays, unless a power cut tore it.
        """
        kept = {segment.base_offset for segment in segments if segment.base_offset >= self._log_start_offset}
        for offset in self._producers.snapshot_offsets():
            if offset <= start:
                continue
            if offset not in kept or (offset == self._log_start_offset and not self._producers.is_sound(offset)):
                self._producers.remove_snapshot(offset)

    def _make_durable(self, segments: Sequence[LogSegment]) -> None:
        """Make durable what was found: another crash must neither take it away nor bring the rest back.

        The recovery point stays where it is until the log is flushed.
        """
        for segment in segments:
            segment.sync()
        for segment in segments[:-1]:
            segment.sync_indexes()
        self._disk.sync_directory(self._directory)
        self._disk.sync_directory(posixpath.dirname(self._directory))

    def _may_follow(self, segment: LogSegment, next_offset: int) -> bool:
        """A segment begins where the one before ended, unless that one was compacted. A hole is what a crash leaves
        that kept a later segment and lost an earlier one.
        """
        if self._may_have_holes:
            return segment.base_offset >= next_offset
        return segment.base_offset == next_offset

    def _take_over(self, segment: LogSegment, batch: RecordBatch, aborted: RebuiltTransactionIndex) -> None:
        header = batch.header
        segment.note_recovered(header)
        self._epochs.note(header.partition_leader_epoch, header.base_offset)
        transaction = update_producers(self._producers, batch)
        if transaction is not None:
            aborted.append(transaction)

    def _snapshot_at(self, segment: LogSegment, *, anew: bool) -> None:
        base_offset = segment.base_offset
        self._producers.end_offset = base_offset
        if base_offset > self._log_start_offset and (anew or self._producers.last_snapshot_offset != base_offset):
            self._producers.take_snapshot(sync=False)

    def _drop(self, segments: list[LogSegment], number: int, why: str) -> None:
        self._has_cut = True
        # The last one first: a crash on the way leaves no hole.
        for segment in reversed(segments[number:]):
            _log.warning("removing %s: %s", segment.path(LOG_SUFFIX), why)
            segment.delete()
        del segments[number:]
        segments[-1].make_active()

    def _start_anew(self, segments: Sequence[LogSegment]) -> list[LogSegment]:
        for segment in reversed(segments):
            segment.delete()
        first = self._segment(self._log_start_offset)
        first.create()
        if not self._config.preallocate:
            first.close()  # as of those that were found; a preallocated file knows how far it is written
        self._producers.clear(self._log_start_offset)
        if self._epochs.entries:
            self._epochs.clear()
            self._epochs.write(self._log_start_offset)  # the next start must not expect what is gone
        return [first]

    def _load_producers(self, segments: Sequence[LogSegment], end_offset: int, *, remove_others: bool = True) -> None:
        self._producers.load_latest_snapshot(
            self._log_start_offset, end_offset, self._now_ms, remove_others=remove_others
        )
        replay_producers(self._producers, segments, end_offset)

    def _rebuild_transaction_index(self, segment: LogSegment, before: Sequence[LogSegment]) -> None:
        """Rebuild the index with producers of its own, from the last snapshot in front of it."""
        producers = self._producers.another()
        producers.load_latest_snapshot(self._log_start_offset, segment.base_offset, self._now_ms, remove_others=False)
        replay_producers(producers, before, segment.base_offset)
        aborted = RebuiltTransactionIndex(self._disk, segment.transaction_index)
        for batch in batches_with_producers(segment, segment.base_offset):
            transaction = update_producers(producers, batch)
            if transaction is not None:
                aborted.append(transaction)
        aborted.finish()

    def _remove_stray_snapshots(self, segments: Sequence[LogSegment]) -> None:
        """One per segment and the latest are of use, unless the log begins behind them, or a power cut tore them."""
        offsets = self._producers.snapshot_offsets()
        useful = {segment.base_offset for segment in segments} | set(offsets[-1:])
        for offset in offsets:
            is_damaged = offset in self._producers.damaged_snapshots
            if is_damaged or offset not in useful or not self._log_start_offset <= offset <= self._producers.end_offset:
                self._producers.remove_snapshot(offset)
