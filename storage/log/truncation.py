"""Taking records off the end of a log, in steps (`UnifiedLog.truncateTo`, `truncateFullyAndStartAt`).

`Log.begin_truncation` and `Log.begin_anew` make one; from then on the log is not appended to, and no flush moves its
recovery point. `prepare` finds out where the batches end and what the producers were there, which may mean to read a
segment; `cut` takes the records away, and belongs where appends and reads are; `finish` makes it durable: what is
appended next must not meet after a crash what was there before. `prepare` and `finish` are for threads. Readers find
all records until `cut`, and none of those afterwards. `end` comes last, whatever has failed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from ..files.disk import Disk
from ..files.errors import FileError
from ..files.flush_turns import FlushTurns
from ..producers.producer_replay import replay_producers
from ..producers.producer_state import ProducerStateManager
from ..segments.leader_epochs import LeaderEpochs
from ..segments.segment import LogSegment, SegmentCut
from ..segments.verification import NotVerified
from .log_names import LogNames
from .log_reads import LogReads
from .log_segments import LogSegments
from .log_state import LogState
from .segment_replacement import SegmentReplacement

_SEGMENTS_AT_ONCE = 32
"""So many are put aside in one step on the event loop."""


@dataclass(frozen=True, slots=True)
class LogParts:
    """The parts of a log that a truncation changes."""

    disk: Disk
    epochs: LeaderEpochs
    segments: LogSegments
    reads: LogReads
    producers: ProducerStateManager
    names: LogNames
    turns: FlushTurns
    replacement: SegmentReplacement


class Truncation(ABC):
    """The truncation of a log that is cut off at `offset`."""

    def __init__(self, log: LogState, parts: LogParts, offset: int) -> None:
        self.log = log
        self.offset = offset
        self._parts = parts
        self._paths: list[str] = []
        """Files that are out of use, under names that say so."""

    def run(self) -> None:
        """All of it, here and now. Raises `FileError`, `CorruptLog`."""
        try:
            self.prepare()
            while not self.cut():
                pass
            self.finish()
        finally:
            self.end()

    def begin(self, recovery_point: int) -> None:
        """Begin. recovery_point: not above what stays."""
        log = self.log
        with self._parts.turns.moving:
            log.is_being_truncated = True
            log.truncations += 1
            log.cleaned_end_offset = 0
            log.recovery_point = min(log.recovery_point, recovery_point)
        try:
            self._parts.replacement.cancel()
        except FileError:
            self.end()
            raise

    def end(self) -> None:
        self.log.is_being_truncated = False

    def prepare(self) -> None:
        """Prepare, in a thread: what tells how far the log had come goes before the records do.

        A process may die on the way. Raises `FileError`, `CorruptLog`; then no record is gone.
        """
        self._unless_abandoned(self._prepare)

    def cut(self) -> bool:
        """The records are gone; False where that takes more than one step. Raises `FileError`."""
        if self.log.is_closed:
            return True
        self._parts.segments.recent.clear()
        return self._cut()

    def finish(self) -> None:
        """Finish, in a thread: the truncation is durable when it returns. Raises `FileError`."""
        self._unless_abandoned(self._finish)

    def _unless_abandoned(self, step: Callable[[], None]) -> None:
        """Work in turn with flushes. A log may be deleted while the thread works on it."""
        with self._parts.turns.turn:
            if self.log.is_closed:
                return
            try:
                step()
            except FileError:
                if not self.log.is_closed:
                    raise

    @abstractmethod
    def _prepare(self) -> None: ...

    @abstractmethod
    def _cut(self) -> bool: ...

    def _finish(self) -> None:
        self._parts.segments.active.sync()
        # A log that begins anew counts as flushed up to there: it must not be missing when that is written.
        self._parts.names.sync_with_directory()
        for path in self._paths:
            self._parts.disk.remove(path)

    def _tell(self, offset: int) -> None:
        if self.log.before_truncation is not None:
            self.log.before_truncation(offset)

    def _put_aside_behind(self, offset: int) -> bool:
        """Tell whether no segment but the first begins behind the offset any more."""
        log, segments = self.log, self._parts.segments
        end = log.log_end_offset
        try:
            for _ in range(_SEGMENTS_AT_ONCE):
                last = segments.last_behind(offset)
                if last is None:
                    return True
                self._paths += last.put_aside()
                segments.drop_last()
                end = last.base_offset
        finally:
            log.log_end_offset = end
            log.log_start_offset = min(log.log_start_offset, end)
        return segments.last_behind(offset) is None


class TruncationOfEpochs(Truncation):
    """The truncation of a log that ends there: only an epoch without records goes, which this replica began."""

    def begin(self, recovery_point: int) -> None:
        """No record is taken back."""

    def end(self) -> None:
        pass

    def _prepare(self) -> None:
        self._parts.epochs.write(self.offset)

    def _cut(self) -> bool:
        return True

    def _finish(self) -> None:
        pass


class TruncationOfRecords(Truncation):
    """The truncation by a follower that disagrees with its leader.

    A batch goes whole. Where the offset lies within one, as a leader's may whose log starts there, the log ends in
    front of it: else it would promise records that it has not, and refuse the batch when the leader sends it.
    """

    def __init__(self, log: LogState, parts: LogParts, offset: int) -> None:
        super().__init__(log, parts, offset)
        self._recovery_point = log.recovery_point
        self._start = offset
        self._is_begun = False
        self._segment_cut: SegmentCut | None = None
        self._producers = parts.producers.another()

    def _prepare(self) -> None:
        log, parts = self.log, self._parts
        offset = self._start = min(self.offset, self._start_of_batch())
        self._tell(offset)
        parts.epochs.write(offset)
        segments = list(parts.segments.all)
        kept = [segment for segment in segments if segment.base_offset <= offset]
        self._segment_cut = kept[-1].plan_cut(offset)
        self._producers.remove_snapshots_behind(offset)
        self._producers.load_latest_snapshot(log.log_start_offset, offset, kept[-1].created_ms)
        replay_producers(self._producers, kept, offset)

    def _start_of_batch(self) -> int:
        while True:
            try:
                return self._parts.reads.start_of_batch(self.offset)
            except NotVerified as unverified:
                unverified.check.run()
                unverified.check.accept()

    def _cut(self) -> bool:
        log, parts, offset = self.log, self._parts, self._start
        if not self._is_begun:
            # Who has seen the first count may have read what goes now.
            self._is_begun = True
            log.truncations += 1
        if not self._put_aside_behind(offset):
            return False
        parts.segments.active.cut(offset, self._segment_cut)
        if offset < self.offset:
            parts.epochs.truncate_from_end(offset)
        log.log_end_offset = offset
        log.log_start_offset = min(log.log_start_offset, offset)
        parts.producers.become(self._producers)
        with parts.turns.moving:
            log.recovery_point = min(self._recovery_point, self._start)
        return True


class TruncationOfAll(Truncation):
    """The log is empty and begins at `offset`. new_segment: makes the one that it has then."""

    def __init__(self, log: LogState, parts: LogParts, offset: int, new_segment: Callable[[], LogSegment]) -> None:
        super().__init__(log, parts, offset)
        self._new_segment = new_segment

    def _prepare(self) -> None:
        self._tell(0)
        if self.log.before_beginning_anew is not None:
            self.log.before_beginning_anew(self.offset)
        self._parts.epochs.write(0)
        self._parts.producers.remove_snapshots_behind(-1)

    def _cut(self) -> bool:
        log, parts, offset = self.log, self._parts, self.offset
        log.truncations += 1
        if not self._put_aside_behind(-1):
            return False
        parts.segments.first.delete()
        new = self._new_segment()
        new.create()
        parts.segments.begin_with(new)
        new.name_change = parts.names.note_change()
        parts.producers.clear(offset)
        log.log_start_offset = log.log_end_offset = offset
        with parts.turns.moving:
            log.recovery_point = offset
        return True
