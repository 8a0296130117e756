"""The offsets of a log directory's partitions: what its checkpoint files said at the start, and say now.

Kafka's counterparts are the checkpoints of `LogManager`, `ReplicaManager` and `LogCleanerManager`. Who writes them
when is not decided here.
"""

import logging
import posixpath
from collections.abc import Callable, Collection, Mapping, Set
from typing import Self, TypeAlias

from pykbroker.protocol.topic_partition import TopicPartition

from ..files.checkpoints import CLEANED_OFFSET, HIGH_WATERMARK, LOG_START_OFFSET, RECOVERY_POINT, OffsetCheckpoint
from ..files.disk import Disk
from ..files.errors import CorruptLog
from ..log.log import Log
from .directory_names import deleted_partitions

_log = logging.getLogger(__name__)

Offsets: TypeAlias = dict[TopicPartition, int]


class DirectoryCheckpoints:
    """Made by `DirectoryCheckpoints.read`. The offsets are those of partitions whose logs are not open, as the files
    had them, or as `quarantine` and `checkpoint_cleaned_offset` have changed them since.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self.recovery_points: dict[TopicPartition, int] = {}
        self.log_start_offsets: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.cleaned_offsets: dict[TopicPartition, int] = {}
        self._disk = disk
        self._path = path
        self._written: dict[str, dict[TopicPartition, int]] = {}
        """What the files hold."""
        self._missing: set[str] = set()
        self._writing = disk.turn()
        self.lowerings = 0
        """How often logs were truncated: who looks at high watermarks, and writes them later, remembers it."""
        self._lowered: dict[TopicPartition, int] = {}
        """The number of each log's latest truncation among all of the directory."""

    @classmethod
    def read(cls, disk: Disk, path: str) -> Self:
        """Read the checkpoints of the log directory at this path. Raises `FileError`."""
        checkpoints = cls(disk, path)
        checkpoints.recovery_points = checkpoints._read(RECOVERY_POINT)
        checkpoints.log_start_offsets = checkpoints._read(LOG_START_OFFSET)
        checkpoints.high_watermarks = checkpoints._read(HIGH_WATERMARK)
        checkpoints.cleaned_offsets = checkpoints._read(CLEANED_OFFSET)
        return checkpoints

    def _read(self, name: str) -> dict[TopicPartition, int]:
        """A damaged checkpoint costs a longer recovery, not the start. As in Kafka each is there from the first start
        on, empty until there is something to be said.
        """
        checkpoint = self._file(name)
        if not self._disk.exists(checkpoint.path):
            self._missing.add(name)
            self._disk.open(checkpoint.path, create=True)
        try:
            self._written[name] = checkpoint.read()
        except CorruptLog as error:
            _log.warning("starting without the offsets of a damaged checkpoint file: %s", error)
            self._missing.add(name)
        return dict(self._written.get(name, {}))

    def _file(self, name: str) -> OffsetCheckpoint:
        return OffsetCheckpoint(self._disk, posixpath.join(self._path, name))

    # What is known

    def knows(self, at: TopicPartition) -> bool:
        return at in self.recovery_points or at in self.high_watermarks

    def known_high_watermark(self, at: TopicPartition) -> int | None:
        """Return None where there are checkpoints, but not the one that would tell."""
        if HIGH_WATERMARK in self._missing and RECOVERY_POINT not in self._missing:
            return None
        return self.high_watermarks.get(at, 0)

    def written_recovery_point(self, at: TopicPartition) -> int:
        return self._written.get(RECOVERY_POINT, {}).get(at, 0)

    def is_written(self, at: TopicPartition) -> bool:
        """Tell whether one of the files names the partition."""
        return any(at in written for written in self._written.values())

    # Taking back

    def forget(self, at: TopicPartition) -> None:
        """The files forget it when they are written next, or with `forget_in_files`."""
        for offsets in (self.recovery_points, self.log_start_offsets, self.high_watermarks, self.cleaned_offsets):
            offsets.pop(at, None)

    def forget_deleted(self, names: Collection[str]) -> None:
        """A crash may have come before the files forgot a deleted log, whose directory still stands among `names`.
        Where its name has another one now, they have: `LogDirectory.open_log` sees to that.
        """
        known = self.recovery_points.keys() | self.high_watermarks.keys() | self.log_start_offsets.keys()
        for at in deleted_partitions(known, names):
            self.forget(at)

    def forget_in_files(self, forgotten: Collection[TopicPartition]) -> None:
        def without(written: Offsets) -> Offsets:
            return {at: written[at] for at in written if at not in forgotten}

        for name in (RECOVERY_POINT, HIGH_WATERMARK, LOG_START_OFFSET, CLEANED_OFFSET):
            self._change(name, without)

    def forget_others_in_files(self, logs: Set[TopicPartition]) -> None:
        """All but these logs, and those that are known and not open. As long as a deleted log's directory is there, a
        start knows that what the files say of it is nothing.
        """
        kept = logs | self.recovery_points.keys() | self.high_watermarks.keys()
        for at in list(self._lowered):  # of a copy: a log that is truncated meanwhile is among them or comes later
            if at not in kept:
                self._lowered.pop(at, None)
        self.forget_in_files({at for written in list(self._written.values()) for at in written if at not in kept})

    def lower(self, at: TopicPartition, offset: int) -> None:
        """The log is about to be truncated: after a crash nobody must look for what is behind."""
        with self._writing:
            # First, so that nobody writes what he found out before.
            self.lowerings += 1
            self._lowered[at] = self.lowerings
        for name in (RECOVERY_POINT, HIGH_WATERMARK):
            self._change(name, lambda written: {**written, at: offset} if written.get(at, 0) > offset else written)

    def lower_high_watermarks(self, end_offsets: Mapping[TopicPartition, int], damaged: Set[TopicPartition]) -> None:
        """Lower the high watermarks to the ends of logs, and to what is known to be durable of those that are gone: a
        start must not miss again what a power cut took.
        """

        def lowered(written: Offsets) -> Offsets:
            ends = {**self.recovery_points, **end_offsets}
            return {at: offset if at in damaged else min(offset, ends.get(at, 0)) for at, offset in written.items()}

        self._change(HIGH_WATERMARK, lowered)

    # Writing

    def quarantine(self, at: TopicPartition, recovery_point: int, high_watermark: int) -> None:
        """Keep the offsets of a damaged log, which is closed now, in the checkpoint files."""
        self.recovery_points[at] = recovery_point
        self.high_watermarks[at] = high_watermark

    def write_recovery_points(self, logs: Mapping[TopicPartition, Log]) -> None:
        """Write the recovery points as they are in this writer's turn: a log may be truncated before."""
        with self._writing:
            self._write(
                RECOVERY_POINT, {**self.recovery_points, **{at: log.recovery_point for at, log in logs.items()}}
            )

    def write_log_start_offsets(self, logs: Mapping[TopicPartition, Log]) -> None:
        """Write the start offsets of logs that start within a segment: the others' files tell theirs. Those of segments
        that are deleted may come back after a power cut until the directory was synced.

        Nothing is written where nothing moved.

        A log must not end before its start, where a crash takes what was not flushed: so that is flushed first.
        """
        starts: Offsets = {}
        for at, log in logs.items():
            start = log.log_start_offset
            if log.begins_in_segment:
                starts[at] = start
                if log.recovery_point < start:
                    log.flush()
        with self._writing:
            log_start_offsets = self.log_start_offsets.copy()
            for at in logs:
                log_start_offsets.pop(at, None)
            log_start_offsets.update(starts)
            if log_start_offsets != self._written.get(LOG_START_OFFSET):
                self._write(LOG_START_OFFSET, log_start_offsets)

    def write_log_start_offset(self, at: TopicPartition, offset: int, is_wanted: Callable[[], bool]) -> None:
        """Write where a log will start that is not here yet, or begins anew. is_wanted: as it is when it is this one's
        turn.
        """
        with self._writing:
            written = self._written.get(LOG_START_OFFSET, {})
            if _put(self.log_start_offsets, at, offset, is_wanted) and written.get(at, 0) != offset:
                self._write(LOG_START_OFFSET, {**written, at: offset})

    def write_high_watermarks(
        self, high_watermarks: Mapping[TopicPartition, int], unopened: Collection[TopicPartition], lowerings: int
    ) -> None:
        """Write the high watermarks of all open logs; those that are not open keep what they had.

        Of one that was truncated since there were so many `lowerings`, the file knows better.
        """
        kept = {at: self.high_watermarks[at] for at in unopened if at in self.high_watermarks}
        with self._writing:
            written = self._written.get(HIGH_WATERMARK, {})
            offsets = {**kept, **high_watermarks}
            for at, lowering in list(self._lowered.items()):
                if lowering > lowerings and at in offsets:
                    offsets[at] = min(offsets[at], written.get(at, 0))
            self._write(HIGH_WATERMARK, offsets)

    def write_cleaned_offset(self, at: TopicPartition, offset: int, is_wanted: Callable[[], bool]) -> None:
        """Write how far a log was cleaned. is_wanted: as it is in this writer's turn."""
        with self._writing:
            if _put(self.cleaned_offsets, at, offset, is_wanted):
                self._write(CLEANED_OFFSET, dict(self.cleaned_offsets))

    def _change(self, name: str, change: Callable[[Offsets], Offsets]) -> None:
        """Change what the file holds; nothing is written where nothing changes."""
        with self._writing:
            written = self._written.get(name)
            if written and (changed := change(written)) != written:
                self._write(name, changed)

    def _write(self, name: str, offsets: Offsets) -> None:
        """Write the file.

        The caller holds `_writing`, and found out what to write in the same turn; else another's is lost.
        """
        self._file(name).write(offsets)
        self._written[name] = offsets


def _put(offsets: Offsets, at: TopicPartition, offset: int, is_wanted: Callable[[], bool]) -> bool:
    """Asked last: whoever deletes the log meanwhile says so first, and then forgets what is there."""
    offsets[at] = offset
    if not is_wanted():
        offsets.pop(at, None)
        return False
    return True
