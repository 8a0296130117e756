"""A log at one moment, and a copy of it as it was then, while the log goes on.

`cut_log` is called where appends are made, of as many logs as are to agree with each other, with nothing in between: it
only notes where each log ends. `write_cut` makes the copy, in a thread: segments that are not active are shared with
the log (`shared_files`), of the active one there is copied what was there. Meanwhile the log may lose segments by
retention and compaction: then `renewed` says which ones to copy, and it is all done once more. A log that was
truncated, deleted or moved meanwhile is not what it was, nor is one that was cleaned by what came behind the cut: the
cut is to be made anew (`is_overtaken`).

A copy is what a clean shutdown would have left, so that its start reads no records but those of the active segment.
"""

import posixpath
from collections.abc import Sequence
from typing import NamedTuple, Self

from ..files.disk import Disk
from ..files.shared_files import copy_front, share
from ..producers.producer_snapshots import SNAPSHOT_SUFFIX
from ..segments import leader_epochs
from ..segments.leader_epochs import EpochEntry, encode_epochs
from ..segments.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    LogSegment,
)
from .log import Log


class LogCut(NamedTuple):
    """A log ended at `end_offset`, `size` bytes into its active segment. closed: the segments in front of that one.

    A tuple, since one moment has as many as the node has logs.
    """

    log: Log
    directory: str
    closed: Sequence[LogSegment]
    active: LogSegment
    size: int
    start_offset: int
    end_offset: int
    epochs: Sequence[EpochEntry]
    truncations: int

    @property
    def begins_in_segment(self) -> bool:
        first = self.closed[0] if self.closed else self.active
        return self.start_offset > first.base_offset

    @property
    def is_overtaken(self) -> bool:
        """Tell whether the log was truncated, deleted or moved since, or is about to be, or has lost records in front
        of the cut for the sake of those behind it.
        """
        log = self.log
        is_here = not log.is_closed and log.directory == self.directory
        is_cut = log.is_being_truncated or log.truncations != self.truncations
        is_cleaned = log.cleaned_end_offset > self.end_offset
        return not is_here or is_cut or is_cleaned or self.active.is_deleted

    def renewed(self) -> Self | None:
        """Return the same with the segments that the log has by now in the place of those that it had; None where it
        still has them.
        """
        segments, active = self.log.segments, self.active
        if not self.closed and segments[0] is active:
            return None
        closed = [each for each in segments if each.base_offset < active.base_offset]
        if closed == self.closed:
            return None
        first = closed[0] if closed else active
        start_offset = min(max(self.start_offset, first.base_offset), self.end_offset)
        epochs = _from_start(self.epochs, start_offset)
        return self._replace(closed=closed, start_offset=start_offset, epochs=epochs)


def cut_log(log: Log) -> LogCut:
    """Note where a log ends. Where appends are made."""
    segments = log.segments
    active = segments[-1]
    return LogCut(
        log,
        log.directory,
        segments[:-1],
        active,
        active.size,
        log.log_start_offset,
        log.log_end_offset,
        log.epochs,
        log.truncations,
    )


def write_cut(disk: Disk, cut: LogCut, target: str, *, others: tuple[str, ...] = ()) -> None:
    """Write the copy into a new directory, in a thread. others: names of files that are copied as they are, if there.

    Raises OSError, `FileError` and `CorruptLog`: where the log has changed meanwhile that means nothing.
    """
    disk.make_directory(target)
    for segment in cut.closed:
        _share_segment(disk, segment, target)
    names = disk.list_directory(cut.directory)
    for name in names:
        stem = name.removesuffix(SNAPSHOT_SUFFIX)
        if name in others or (stem != name and stem.isdecimal() and int(stem) <= cut.end_offset):
            try:
                share(posixpath.join(cut.directory, name), posixpath.join(target, name))
            except FileNotFoundError:
                continue  # the next older one tells the same, with some more batches to look at
    _copy_active(cut, target)
    if cut.epochs and cut.end_offset:
        _write(posixpath.join(target, leader_epochs.FILE_NAME), encode_epochs(cut.epochs))


def _share_segment(disk: Disk, segment: LogSegment, target: str) -> None:
    for suffix in SEGMENT_SUFFIXES:
        path = segment.path(suffix)
        if suffix != TRANSACTION_INDEX_SUFFIX or disk.exists(path):
            share(path, posixpath.join(target, posixpath.basename(path)))


def _copy_active(cut: LogCut, target: str) -> None:
    """Copy the active segment up to the cut; its indexes may be active no more by now."""
    active, end_offset = cut.active, cut.end_offset

    def path(suffix: str) -> str:
        return posixpath.join(target, posixpath.basename(active.path(suffix)))

    copy_front(active.path(LOG_SUFFIX), path(LOG_SUFFIX), cut.size)
    _write(path(INDEX_SUFFIX), active.offset_index.encode_before(end_offset, cut.size))
    _write(path(TIME_INDEX_SUFFIX), active.time_index.encode_before(end_offset))
    aborted = active.transaction_index.encode_before(end_offset)
    if aborted:
        _write(path(TRANSACTION_INDEX_SUFFIX), aborted)


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)


def _from_start(epochs: Sequence[EpochEntry], start_offset: int) -> list[EpochEntry]:
    """Return the epochs of a log that starts there."""
    later = [each for each in epochs if each.start_offset > start_offset]
    earlier = epochs[: len(epochs) - len(later)]
    return [*(EpochEntry(each.epoch, start_offset) for each in earlier[-1:]), *later]
