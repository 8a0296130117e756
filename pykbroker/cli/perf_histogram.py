"""Latencies in an array of fixed length: a hundred million of them take no more memory than ten.

The buckets are those of HdrHistogram: up to 255 µs each microsecond has one, and above that each power of two is cut
into 128. A percentile is the largest latency of its bucket, so that it is too high by at most 1/128, and never too low.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import Final

ERROR: Final = 1 / 128
"""By how much a percentile may be too high, as a share of itself."""
_BITS: Final = 7
_HIGHEST_US: Final = (1 << 40) - 1
"""Twelve days: what took longer is counted as that."""
_BUCKETS: Final = ((40 - _BITS) << _BITS) + (1 << _BITS)


class LatencyHistogram:
    """A histogram of microseconds. The mean and the maximum are exact."""

    def __init__(self) -> None:
        self.count = 0
        self.total_us = 0
        self.max_us = 0
        self._counts = array("Q", bytes(8 * _BUCKETS))

    def add(self, latencies_us: Iterable[int]) -> None:
        """Count latencies; one below zero, by a clock that was set back, is none."""
        counts, total, largest, count = self._counts, 0, self.max_us, 0
        for given in latencies_us:
            latency = given if 0 <= given <= _HIGHEST_US else max(0, min(given, _HIGHEST_US))
            shift = latency.bit_length() - _BITS - 1
            counts[latency if shift <= 0 else (shift << _BITS) + (latency >> shift)] += 1
            total += latency
            count += 1
            if latency > largest:
                largest = latency
        self.count += count
        self.total_us += total
        self.max_us = largest

    @property
    def mean_ms(self) -> float:
        return self.total_us / self.count / 1000 if self.count else 0.0

    @property
    def max_ms(self) -> float:
        return self.max_us / 1000

    def percentile_ms(self, percentile: float) -> float:
        """Return the latency that so many in a hundred do not exceed; 0 where nothing was counted."""
        rank = max(1, math.ceil(self.count * percentile / 100))
        seen = 0
        for index, count in enumerate(self._counts):
            seen += count
            if seen >= rank:
                return min(_largest_us(index), self.max_us) / 1000
        return 0.0


def _largest_us(index: int) -> int:
    """Return the largest latency of a bucket."""
    shift = max(0, (index >> _BITS) - 1)
    return ((index - (shift << _BITS) + 1) << shift) - 1
