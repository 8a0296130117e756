"""A rate is what was recorded in the last windows, by the time that they took: Kafka's `Rate` over a `SampledStat`.

A sample begins with the first record behind the end of the one before, so that it may begin anywhere. It counts until
nothing was recorded in it for as long as all windows take. A young rate is measured as if its windows had been there:
the time is that of all windows but one, and what has gone by of the current one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

MOST_THROTTLE_MS: Final = 2**31 - 1
"""Of an answer's `throttle_time_ms`; Kafka cuts the higher bits off, which may leave nothing."""


@dataclass(frozen=True, slots=True)
class QuotaWindows:
    """The windows of a rate. count: `quota.window.num`; size_ms: of `quota.window.size.seconds`."""

    count: int = 11
    size_ms: int = 1000

    span_ms: int = field(init=False)
    least_s: float = field(init=False)
    """Of the time by which a rate is measured: all windows but the current one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "span_ms", self.count * self.size_ms)
        object.__setattr__(self, "least_s", max((self.count - 1) * self.size_ms, 1) / 1000)


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """The rate of one sensor, in units a second."""

    __slots__ = ("_samples", "_total", "_windows")

    def __init__(self, windows: QuotaWindows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []
        """The oldest first; each ends where the next one begins."""
        self._total = 0.0

    def record(self, value: float, now_ms: int) -> None:
        """Count a value; a negative one takes back what was counted."""
        self.record_against(math.inf, value, now_ms)

    def record_against(self, limit: float, value: float, now_ms: int) -> int:
        """Do both, `record` and `throttle_ms`; quickly where the limit is not in question."""
        samples, windows = self._samples, self._windows
        if not samples or now_ms - samples[-1].start_ms >= windows.size_ms:
            samples.append(_Sample(now_ms))
        sample = samples[-1]
        sample.value += value
        sample.last_ms = now_ms
        self._total += value
        if now_ms - samples[0].last_ms < windows.span_ms and self._total <= limit * windows.least_s:
            return 0
        return self.throttle_ms(limit, now_ms)

    def measure(self, now_ms: int) -> float:
        return self._total * 1000 / self._window_ms(now_ms)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return how long nothing may be recorded until the rate is back within its limit; 0 where it is.

        Kafka's `QuotaUtils.throttleTime`: with the rate O over the windows' time W, X milliseconds more make it the
        limit T, where O * W / (W + X) = T.
        """
        window_ms = self._window_ms(now_ms)
        rate = self._total * 1000 / window_ms
        if rate <= limit:
            return 0
        if limit <= 0:
            return MOST_THROTTLE_MS
        return min(math.floor((rate - limit) / limit * window_ms + 0.5), MOST_THROTTLE_MS)

    def _window_ms(self, now_ms: int) -> int:
        self._forget(now_ms)
        windows, samples = self._windows, self._samples
        elapsed_ms = now_ms - samples[0].start_ms if samples else 0
        lacking = windows.count - 1 - elapsed_ms // windows.size_ms
        if lacking > 0:
            elapsed_ms += lacking * windows.size_ms
        return max(elapsed_ms, 1)

    def _forget(self, now_ms: int) -> None:
        samples = self._samples
        if not samples or now_ms - samples[0].last_ms < self._windows.span_ms:
            return
        while samples and now_ms - samples[0].last_ms >= self._windows.span_ms:
            del samples[0]
        self._total = sum(sample.value for sample in samples)  # summed anew, so that no error of floats adds up
