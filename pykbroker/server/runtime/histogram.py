"""A histogram of times, for what is measured on the hot path: to record one costs an index and two additions.

The bounds double from one to the next, so that the place of a time is the length of a number in bits.
"""

from __future__ import annotations

from typing import Final

SHORTEST_NS: Final = 125_000
"""What is shorter is in the first bucket."""
_BOUNDS: Final = 17
BOUNDS_MS: Final = tuple(SHORTEST_NS * 2**number / 1e6 for number in range(_BOUNDS))
"""The upper ends of the buckets, from an eighth of a millisecond to 8 s; one more bucket has what is longer."""


class Histogram:
    """Times by bucket. counts: one more than there are bounds; sum_ns: of all times."""

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (_BOUNDS + 1)
        self.sum_ns = 0

    def record(self, time_ns: int) -> None:
        place = (time_ns // SHORTEST_NS).bit_length() if time_ns > 0 else 0
        self.counts[place if place < _BOUNDS else _BOUNDS] += 1
        self.sum_ns += time_ns

    def among(self, count: int) -> Histogram:
        """Return the times up to now, of so many together: those that nobody recorded were short."""
        copied = self.copy()
        copied.counts[0] = count - sum(copied.counts[1:])
        return copied

    def copy(self) -> Histogram:
        """Return the times up to now, for who reads them later."""
        copied = Histogram()
        copied.counts, copied.sum_ns = self.counts.copy(), self.sum_ns
        return copied
