"""Opening a log: which of its files to trust, and what to make of those that cannot be trusted (`LogLoader`).

After a clean shutdown a look at the ends is enough. Otherwise every batch from the recovery point's segment on is
checked, the first one that is torn or out of order ends the log, and indexes, epochs and producers are built anew.
"""

import logging
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pykbroker.protocol.records.batch import RecordBatch, RecordBatchHeader

from .batch_scan import refuse_legacy_format, scan_batches, scan_headers
from .disk import Disk
from .indexes import MAX_RELATIVE_OFFSET
from .leader_epochs import LeaderEpochs
from .log_config import LogConfig
from .producer_state import ProducerStateManager
from .replacements import complete_replacements
from .segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    LogSegment,
)
from .transaction_markers import find_marker

_log = logging.getLogger(__name__)

_LEFTOVER_SUFFIXES = (DELETED_SUFFIX, CLEANED_SUFFIX, ".tmp")


@dataclass(slots=True)
class LoadedLog:
    """`segments` is never empty; the last one is active."""

    segments: list[LogSegment]
    next_offset: int
    recovery_point: int


class LogLoader:
    """Loads one log. `producers` and `epochs` are filled on the way."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: LogConfig,
        producers: ProducerStateManager,
        epochs: LeaderEpochs,
        *,
        log_start_offset: int,
        recovery_point: int,
        clean_shutdown: bool,
        now_ms: int,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._config = config
        self._producers = producers
        self._epochs = epochs
        self._log_start_offset = log_start_offset
        self._recovery_point = recovery_point
        self._clean_shutdown = clean_shutdown
        self._now_ms = now_ms

    def load(self) -> LoadedLog:
        self._disk.make_directory(self._directory)
        complete_replacements(self._disk, self._directory)
        self._epochs.load()
        segments = [self._segment(base_offset) for base_offset in self._base_offsets()]
        if segments:
            # Retention moves the start without a checkpoint.
            self._log_start_offset = max(self._log_start_offset, segments[0].base_offset)
        suspect_from = self._first_suspect(segments)
        next_offset = None
        if segments and suspect_from == len(segments):
            next_offset = segments[-1].make_active()
            if next_offset is None:
                suspect_from = len(segments) - 1
        if suspect_from < len(segments):
            next_offset = self._recover(segments, suspect_from)
        elif next_offset is not None:
            self._load_producers(segments, next_offset)
        if next_offset is None or next_offset < self._log_start_offset:
            segments, next_offset = self._start_anew(segments), self._log_start_offset
        self._epochs.truncate_from_end(next_offset)
        self._epochs.truncate_from_start(self._log_start_offset)
        self._remove_stray_snapshots(segments)
        return LoadedLog(segments, next_offset, min(self._recovery_point, next_offset))

    def _segment(self, base_offset: int) -> LogSegment:
        return LogSegment(self._disk, self._directory, base_offset, self._config, self._now_ms)

    def _base_offsets(self) -> list[int]:
        """Those of the segments; removes what is left of files that were to go."""
        names = self._disk.list_directory(self._directory)
        stems = {name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)}
        for name in names:
            stem, dot, suffix = name.rpartition(".")
            is_orphan = (
                dot + suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX) and stem not in stems
            )
            if is_orphan or name.endswith(_LEFTOVER_SUFFIXES):
                self._disk.remove(posixpath.join(self._directory, name))
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def _first_suspect(self, segments: Sequence[LogSegment]) -> int:
        """The number of the first segment whose batches must be checked; their count where there is none."""
        trusted = len(segments)
        if not self._clean_shutdown:
            trusted = sum(segment.base_offset <= self._recovery_point for segment in segments)
            trusted = max(trusted - 1, 0)
        # The active segment is looked at when it is made active.
        for number, segment in enumerate(segments[: min(trusted, len(segments) - 1)]):
            if segment.open_inactive(segments[number + 1].base_offset):
                continue
            _log.warning("rebuilding the indexes of %s", segment.path(LOG_SUFFIX))
            segment.rebuild_indexes()
            if segment.size != segment.file.size():
                return number
            segment.make_inactive()
        return trusted

    def _recover(self, segments: list[LogSegment], first: int) -> int:
        """Check every batch from segment `first` on; returns the next offset. Segments behind a torn one go."""
        start = segments[first].base_offset
        self._load_producers(segments[:first], start)
        next_offset = start
        last_epoch = -1
        for number, segment in enumerate(segments[first:], first):
            if number > first and not self._may_follow(segment, next_offset):
                self._drop(segments, number, f"it does not follow offset {next_offset}")
                break
            next_offset = segment.base_offset
            self._snapshot_at(segment)
            segment.begin_rebuild()
            size = segment.file.size()
            for _, batch in scan_batches(segment.file, 0, size):
                header = batch.header
                if not _is_next(segment, header, next_offset, last_epoch) or not batch.is_crc_valid:
                    break
                self._take_over(segment, batch)
                next_offset, last_epoch = header.next_offset, header.partition_leader_epoch
            if segment.size < size:
                refuse_legacy_format(segment.file, segment.size, size)
                _log.warning(
                    "cutting off %d bytes behind offset %d of %s",
                    size - segment.size,
                    next_offset,
                    segment.path(LOG_SUFFIX),
                )
                segment.cut_off(segment.size)
                if number + 1 < len(segments):
                    self._drop(segments, number + 1, "the one before is torn")
                break
            if number + 1 < len(segments):
                segment.make_inactive()
        self._producers.end_offset = next_offset
        return next_offset

    def _may_follow(self, segment: LogSegment, next_offset: int) -> bool:
        """A segment begins where the one before ended, unless that one was compacted. A hole is what a crash leaves
        that kept a later segment and lost an earlier one.
        """
        if self._config.compact:
            return segment.base_offset >= next_offset
        return segment.base_offset == next_offset

    def _take_over(self, segment: LogSegment, batch: RecordBatch) -> None:
        header = batch.header
        segment.note_recovered(header)
        epoch = header.partition_leader_epoch
        latest = self._epochs.latest_epoch
        if epoch >= 0 and (latest is None or epoch > latest):
            self._epochs.assign(epoch, header.base_offset)
        update_producers(self._producers, batch)

    def _snapshot_at(self, segment: LogSegment) -> None:
        base_offset = segment.base_offset
        self._producers.end_offset = base_offset
        if base_offset > self._log_start_offset and base_offset not in self._producers.snapshot_offsets():
            self._producers.take_snapshot(sync=False)

    def _drop(self, segments: list[LogSegment], number: int, why: str) -> None:
        for segment in segments[number:]:
            _log.warning("removing %s: %s", segment.path(LOG_SUFFIX), why)
            segment.delete()
        del segments[number:]
        segments[-1].make_active()

    def _start_anew(self, segments: Sequence[LogSegment]) -> list[LogSegment]:
        for segment in segments:
            segment.delete()
        first = self._segment(self._log_start_offset)
        first.create()
        self._producers.clear(self._log_start_offset)
        self._epochs.clear()
        return [first]

    def _load_producers(self, segments: Sequence[LogSegment], end_offset: int) -> None:
        self._producers.load_latest_snapshot(self._log_start_offset, end_offset, self._now_ms)
        replay_producers(self._producers, segments, end_offset)

    def _remove_stray_snapshots(self, segments: Sequence[LogSegment]) -> None:
        """One per segment and the latest are of use."""
        offsets = self._producers.snapshot_offsets()
        useful = {segment.base_offset for segment in segments} | set(offsets[-1:])
        for offset in offsets:
            if offset not in useful or offset > self._producers.end_offset:
                self._producers.remove_snapshot(offset)


def _is_next(segment: LogSegment, header: RecordBatchHeader, next_offset: int, last_epoch: int) -> bool:
    """Offsets go up, with holes where a log was compacted; epochs never go down."""
    return (
        header.base_offset >= next_offset
        and header.last_offset_delta >= 0
        and header.last_offset - segment.base_offset <= MAX_RELATIVE_OFFSET
        and header.partition_leader_epoch >= last_epoch
    )


def update_producers(producers: ProducerStateManager, batch: RecordBatch) -> None:
    """A batch of the log, data or control, that needs no check any more."""
    header = batch.header
    if not header.has_producer_id:
        return
    if not header.is_control:
        producers.update(header, header.base_offset, header.max_timestamp)
        return
    marker = find_marker(batch.data)
    if marker is not None:
        producers.update_marker(header, marker)


def replay_producers(producers: ProducerStateManager, segments: Sequence[LogSegment], end_offset: int) -> None:
    """Bring the state from its `end_offset` to that of the log."""
    if producers.end_offset >= end_offset:
        return
    for number, segment in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= producers.end_offset:
            continue
        for batch in _batches_with_producers(segment, producers.end_offset):
            if batch.header.base_offset >= end_offset:
                break
            update_producers(producers, batch)
    producers.end_offset = end_offset


def _batches_with_producers(segment: LogSegment, start_offset: int) -> Iterator[RecordBatch]:
    start = segment.offset_index.lookup(start_offset)
    for position, header in scan_headers(segment.file, start, segment.size):
        if header.base_offset >= start_offset and header.has_producer_id:
            size = header.size_bytes if header.is_control else 0
            yield RecordBatch(header, memoryview(segment.file.read_at(position, size) if size else b""))
