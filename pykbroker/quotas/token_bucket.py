"""A token bucket fills at the rate of its quota, and a burst may empty it: Kafka's `TokenBucket` (KIP-599).

What a rate forgets only when its window has gone by, a bucket has back as soon as it is refilled. It may be overdrawn
by one request; the next one waits until there is something in it again.
"""

from __future__ import annotations

import math

from .rate import MOST_THROTTLE_MS, QuotaWindows


class TokenBucket:
    """The bucket holds what may be had in all windows together, and is full at first."""

    __slots__ = ("_burst_s", "_tokens", "_updated_ms")

    def __init__(self, windows: QuotaWindows) -> None:
        self._burst_s = windows.span_ms / 1000
        self._tokens: float | None = None
        self._updated_ms = 0

    def take(self, count: float, limit: float, now_ms: int) -> None:
        self._tokens = min(self._burst_s * limit, self._refilled(limit, now_ms) - count)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return the time until the bucket is not overdrawn any more."""
        tokens = self._tokens = self._refilled(limit, now_ms)
        if tokens >= 0:
            return 0
        if limit <= 0:
            return MOST_THROTTLE_MS
        return min(math.floor(-tokens / limit * 1000 + 0.5), MOST_THROTTLE_MS)

    def _refilled(self, limit: float, now_ms: int) -> float:
        burst = self._burst_s * limit
        passed_s, self._updated_ms = (now_ms - self._updated_ms) / 1000, now_ms
        return burst if self._tokens is None else min(burst, self._tokens + limit * passed_s)
