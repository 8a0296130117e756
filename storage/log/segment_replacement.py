"""A segment takes the place of others, in a log that is in use (`LocalLog.replaceSegments`).

Its files are `.cleaned`, then `.swap`, then have their final names. What a crash left half done is completed, or
undone, by `replacements`.
"""

from collections.abc import Sequence

from ..files.errors import DiskFailed, NoRoom
from ..producers.producer_state import ProducerStateManager
from ..segments.segment import SWAP_SUFFIX, LogSegment
from .log_segments import LogSegments


class SegmentReplacement:
    """The one that is under way, if any. Whoever removes inactive segments cancels first."""

    def __init__(self, segments: LogSegments, producers: ProducerStateManager) -> None:
        self._segments = segments
        self._producers = producers
        self._under_way: tuple[LogSegment, Sequence[LogSegment]] | None = None

    def begin(self, new: LogSegment, old: Sequence[LogSegment]) -> bool:
        """Begin: from now on recovery lets the new segment take the place of the others, which are neighbours.

        Return False where the log does not have them any more.
        """
        if not self._segments.has(old):
            return False
        new.rename(SWAP_SUFFIX)
        self._under_way = (new, list(old))
        return True

    def finish(self, new: LogSegment) -> list[str] | None:
        """Return the paths of the old files. None where it was cancelled meanwhile. Raises `DiskFailed`."""
        if self._under_way is None or self._under_way[0] is not new:
            return None
        old = self._under_way[1]
        self._under_way = None
        assert self._segments.has(old), "whoever removes inactive segments cancels first"
        try:
            # The snapshot at the first base offset stays of use.
            paths = old[0].put_aside()
            for segment in old[1:]:
                paths += segment.put_aside() + self._producers.put_snapshot_aside(segment.base_offset)
            new.rename("")
        except NoRoom as refusal:
            # Half done it cannot be taken back, and must not be left: the next start does the rest.
            raise DiskFailed(refusal.operation, refusal.path, refusal.error) from refusal
        self._segments.replace(old, new)
        return paths

    def cancel(self) -> None:
        """The new segment must not bring anything back."""
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            under_way[0].delete()
