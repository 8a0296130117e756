"""Cleaning one log: the latest record of each key stays, with its offset and in its place (`Cleaner`).

First the keys of the dirty part are read, as far as the memory for them reaches. Then the segments from the first one
on are copied, group by group, into one new segment each. Appends and reads go on meanwhile: reading and copying is
`segment_cleaner`'s, and may be done in another thread or process; `begin_swap` and `swap` change the log.

    cleaning = Cleaning(cleanable, …)
    for group in cleaning.plan():
        segment = cleaning.clean(group)
        cleaning.begin_swap(segment, group), log.sync_names(), cleaning.swap(segment), log.sync_names()
    checkpoint cleaning.end_offset
"""

from collections.abc import Callable, Sequence

from ..segments.indexes import MAX_RELATIVE_OFFSET
from ..segments.segment import LogSegment
from .cleanable_logs import CleanableLog
from .cleaning_task import CleanerConfig, CleaningAborted, CleaningTask, CleaningWork, Progress, Uncleanable
from .record_filter import last_records
from .segment_cleaner import SegmentCleaner

__all__ = ["CleanerConfig", "Cleaning", "CleaningAborted", "Progress", "Uncleanable"]


class Cleaning:
    """One round over one log. To be made where the log is written to, since it looks at the producers.

    horizon_ms: up to when delete horizons are over; None where that is now.
    begin: where the reading and the copying is done: here, or by `server.logs.cleaning_process.CleaningProcess` in a
    process of its own, which only the real disk allows.
    """

    def __init__(
        self,
        cleanable: CleanableLog,
        config: CleanerConfig,
        *,
        now_ms: int,
        horizon_ms: int | None = None,
        progress: Progress,
        begin: Callable[[CleaningTask, Progress], CleaningWork] = SegmentCleaner,
    ) -> None:
        self._log = log = cleanable.log
        self._truncations = log.truncations
        self._task = CleaningTask(
            log.directory,
            log.config,
            list(log.segments),
            log.epochs,
            cleanable.first_dirty_offset,
            cleanable.end_offset,
            last_records(log.producers.producers),
            now_ms,
            now_ms if horizon_ms is None else horizon_ms,
            config,
            log.new_cleaned_segment,
        )
        self._segments = self._task.cleanable_segments
        self._end_offsets = [each.base_offset for each in self._segments[1:]] + [cleanable.end_offset]
        self.end_offset = cleanable.end_offset
        self._work = begin(self._task, progress)

    def plan(self) -> list[list[LogSegment]]:
        """Read the keys; the groups of segments to clean, in order. `end_offset` is known from then on.

        Raises `CleaningAborted`, `Uncleanable`, `CorruptLog`, `FileError`.
        """
        if self._log.recovery_point < self._task.end_offset:
            # A durable record must not go for a later one that a crash could still take.
            self._log.flush()
        self.end_offset = self._work.read_keys()
        return self._groups()

    def _groups(self) -> list[list[LogSegment]]:
        """Neighbours that together are no larger than a segment may be: cleaned segments would get ever smaller."""
        groups: list[list[LogSegment]] = []
        size = 0
        for segment, end_offset in zip(self._segments, self._end_offsets, strict=True):
            if segment.base_offset >= self.end_offset:
                break
            if (
                groups
                and size + segment.size <= self._log.config.segment_bytes
                and end_offset - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET
            ):
                groups[-1].append(segment)
                size += segment.size
            else:
                groups.append([segment])
                size = segment.size
        return groups

    def clean(self, group: Sequence[LogSegment]) -> LogSegment:
        """A new segment with what stays of the group: durable, and not yet part of the log.

        Its files are made by their names: the next log of this one's name is not made before that has ended. Raises
        `CleaningAborted`, `CorruptLog`, `FileError`; then no file of it is left.
        """
        with self._log.cleaning:
            if self._log.is_closed:
                raise CleaningAborted(f"{self._log.directory} is closed")
            return self._work.clean(group)

    # Taking the old segments' place

    def begin_swap(self, segment: LogSegment, group: Sequence[LogSegment]) -> None:
        """Raises `CleaningAborted` where the log is not what it was. Then the directory is to be synced."""
        # What made older records superfluous may have been truncated.
        is_truncated = self._log.truncations != self._truncations
        if self._log.is_closed:
            segment.abandon()  # its files went with the log's: what has their names may be another log's
            raise CleaningAborted(f"{self._log.directory} is closed")
        if is_truncated or not self._log.begin_replacement(segment, group):
            segment.delete()
            raise CleaningAborted(f"{self._log.directory} has changed")
        self._log.cleaned_end_offset = max(self._log.cleaned_end_offset, self.end_offset)

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
        """Tell whether segments were removed that were still to be cleaned; their files cannot be read any more."""
        return self._log.is_closed or any(each.is_deleted for each in self._segments)
