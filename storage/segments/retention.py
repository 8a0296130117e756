"""The rules by which a log's oldest segments may go: by time, by size, and in front of the log start offset.

The rules are those of `UnifiedLog.deleteOldSegments`. They decide only: `Log.delete_old_segments` acts on them. What
goes is always the head of the log, below the high watermark, and the log start offset never passes either.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile

from .log_config import LogConfig
from .segment import LogSegment


def expired_segments(
    segments: Sequence[LogSegment],
    config: LogConfig,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> int:
    """Return how many segments from the oldest on are to go; all of them only where the active one is rolled first."""
    deletable = _deletable(segments, min(high_watermark, log_end_offset), log_end_offset)
    # The active segment stays where only the start offset has passed it: there is nothing to be had from rolling it.
    gone = _count(segments[: min(deletable, len(segments) - 1)], _ends_before(segments, log_start_offset))
    if config.delete and config.retention_bytes >= 0:
        surplus_bytes = sum(segment.size for segment in segments[gone:]) - config.retention_bytes
        gone += _count(segments[gone:deletable], _exceeds(surplus_bytes))
    if config.delete and config.retention_ms >= 0:
        gone += _count(segments[gone:deletable], _is_older_than(now_ms - config.retention_ms))
    return gone


Rule = Callable[[LogSegment], bool]
"""Asked segment after segment, until it says no."""


def _deletable(segments: Sequence[LogSegment], limit: int, log_end_offset: int) -> int:
    """The number of segments that lie below the high watermark as a whole; an empty active one stays."""
    for number, segment in enumerate(segments):
        is_active = number + 1 == len(segments)
        end_offset = log_end_offset if is_active else segments[number + 1].base_offset
        if end_offset > limit or (is_active and not segment.size):
            return number
    return len(segments)


def _count(segments: Sequence[LogSegment], rule: Rule) -> int:
    return sum(1 for _ in takewhile(rule, segments))


def _ends_before(segments: Sequence[LogSegment], log_start_offset: int) -> Rule:
    following = iter(segments[1:])
    return lambda segment: next(following).base_offset <= log_start_offset


def _exceeds(surplus_bytes: int) -> Rule:
    """Return the rule by which segments go while the log is still as large as it may be without them."""
    gone_bytes = 0

    def rule(segment: LogSegment) -> bool:
        nonlocal gone_bytes
        gone_bytes += segment.size
        return gone_bytes <= surplus_bytes

    return rule


def _is_older_than(limit_ms: int) -> Rule:
    """Return the rule by the latest record; where no record has a timestamp, by when its file was written to last."""
    return lambda segment: segment.latest_ms < limit_ms
