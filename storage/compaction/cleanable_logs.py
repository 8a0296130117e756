"""The choice of the log that needs cleaning most, and how far it may be cleaned (`LogCleanerManager`)."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pykbroker.reckoning import Reckoning, by_the_clock

from ..log.log import Log
from ..segments.batch_scan import scan_headers
from ..segments.log_config import MAX_LONG
from ..segments.segment import LogSegment


@dataclass(frozen=True, slots=True)
class CleanableLog:
    """A log to clean from `first_dirty_offset` on, up to `end_offset`."""

    log: Log
    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    """Something in the dirty part is older than `max.compaction.lag.ms`."""

    @property
    def dirty_ratio(self) -> float:
        return self.dirty_bytes / (self.clean_bytes + self.dirty_bytes)

    @property
    def is_due(self) -> bool:
        if not self.dirty_bytes:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def dirtiest(logs: Iterable[CleanableLog]) -> CleanableLog | None:
    """Return the dirtiest of the logs that are due."""
    return max((each for each in logs if each.is_due), key=lambda each: each.dirty_ratio, default=None)


def find_cleanable(
    log: Log,
    cleaned_offset: int | None,
    last_stable_offset: int,
    now_ms: int,
    reckon: Reckoning = by_the_clock,
) -> CleanableLog:
    """Find how far a log may be cleaned.

    cleaned_offset: where the last cleaning ended, None before the first. reckon: how late it is for the lags of
    compaction. Raises `FileError`, where `max.compaction.lag.ms` asks for a look into the segments.
    """
    segments = list(log.segments)
    first_dirty = log.log_start_offset if cleaned_offset is None else max(cleaned_offset, log.log_start_offset)
    if first_dirty > log.log_end_offset:
        # The log was truncated, or is another one of the same name.
        first_dirty = log.log_start_offset
    first = max(bisect_right(segments, first_dirty, key=lambda segment: segment.base_offset) - 1, 0)
    config = log.config
    min_lag_now_ms = reckon(now_ms, config.min_compaction_lag_ms)
    end = _end_of_cleanable(log, segments, first, last_stable_offset, min_lag_now_ms)
    dirty = segments[first:end]
    return CleanableLog(
        log,
        first_dirty,
        segments[end].base_offset,
        clean_bytes=sum(segment.size for segment in segments[:first]),
        dirty_bytes=sum(segment.size for segment in dirty),
        is_overdue=_is_overdue(dirty, config.max_compaction_lag_ms, reckon(now_ms, config.max_compaction_lag_ms)),
    )


def _end_of_cleanable(
    log: Log, segments: Sequence[LogSegment], first_dirty: int, last_stable_offset: int, now_ms: int
) -> int:
    """The number of the first segment that must stay as it is: the active one at the latest, one that is not stable as
    a whole, or one with records younger than `min.compaction.lag.ms`.
    """
    lag_ms = log.config.min_compaction_lag_ms
    for number, segment in enumerate(segments[:-1]):
        if segments[number + 1].base_offset > last_stable_offset:
            return number
        if number >= first_dirty and lag_ms > 0 and segment.max_timestamp > now_ms - lag_ms:
            return number
    return len(segments) - 1


def _is_overdue(dirty: Sequence[LogSegment], max_lag_ms: int, now_ms: int) -> bool:
    if max_lag_ms >= MAX_LONG:
        return False
    for segment in dirty:
        first = next(scan_headers(segment.file, 0, segment.size), None)
        if first is not None and 0 < first[1].max_timestamp < now_ms - max_lag_ms:
            return True
    return False
