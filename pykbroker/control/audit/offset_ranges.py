"""Ranges of offsets that a client was sent, in bounded memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

MOST_RANGES: Final = 64


class OffsetRanges:
    """Ranges `[first, end)`. Of more than `MOST_RANGES` the lowest grow together: what lies between counts, too."""

    __slots__ = ("_ends", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []

    def add(self, first: int, end: int) -> None:
        """Add a range. An empty one changes nothing."""
        if first >= end:
            return
        low = bisect_left(self._ends, first)
        high = bisect_right(self._firsts, end)
        if low < high:
            first = min(first, self._firsts[low])
            end = max(end, self._ends[high - 1])
        self._firsts[low:high] = [first]
        self._ends[low:high] = [end]
        if len(self._firsts) > MOST_RANGES:
            del self._firsts[1], self._ends[0]

    def first_missing(self, first: int, end: int) -> tuple[int, int] | None:
        """Return the first part of `[first, end)` that is in no range; None where all of it is."""
        at = bisect_right(self._firsts, first) - 1
        if at >= 0 and self._ends[at] > first:
            first = self._ends[at]
        if first >= end:
            return None
        following = self._firsts[at + 1] if at + 1 < len(self._firsts) else end
        return first, min(following, end)
