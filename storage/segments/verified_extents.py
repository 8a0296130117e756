"""The bytes of a segment that were checked since the log was opened; those that this process wrote need no check.

One interval as a rule: readers go from front to back. Positions are those between batches.
"""

from bisect import bisect_left, bisect_right


class VerifiedExtents:
    """The verified bytes of one segment.

    end: what stands behind was written, or checked, by this process. end_offset: that of the batches before; None where
    nobody knows.
    """

    def __init__(self, end: int, end_offset: int | None) -> None:
        self.end = end
        self.end_offset = end_offset
        self._starts: list[int] = []
        self._ends: list[int] = []

    def covers(self, start: int, end: int) -> bool:
        """Tell whether all of [start, end) is known to be sound."""
        at = bisect_right(self._starts, start) - 1
        return start >= self.end or (at >= 0 and min(end, self.end) <= self._ends[at])

    def known_until(self, position: int) -> int | None:
        """Return the end of what is known to be sound at, or right in front of, a position; None where nothing is."""
        at = bisect_right(self._starts, position) - 1
        return self._ends[at] if at >= 0 and position <= self._ends[at] else None

    @property
    def is_complete(self) -> bool:
        return self.covers(0, self.end)

    def add(self, start: int, end: int) -> None:
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def truncate(self, position: int) -> None:
        """The segment ends there now."""
        if position >= self.end:
            return
        self.end, self.end_offset = position, None
        kept = bisect_left(self._starts, position)
        del self._starts[kept:], self._ends[kept:]
        if self._ends:
            self._ends[-1] = min(self._ends[-1], position)
