"""One series of values that a client pushes: its kind, its name, its labels and what it has come to.

Clients push what has come since their last push (delta temporality), and Prometheus reads what has come since the
start: sums and histograms are added up, as long as each push has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from math import isfinite
from typing import TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values, each fit for Prometheus, by name."""


class SeriesKind(Enum):
    """The types of Prometheus. A sum that may fall is a gauge; what has neither one value nor buckets is a summary."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """The name and labels of a series. name: as Prometheus has it, without the endings of samples. pushed_name: the
    client's own, one of them where several come to that.
    """

    kind: SeriesKind
    name: str
    labels: Labels
    pushed_name: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class SeriesValue:
    """One value. number: of a gauge or a counter, and the sum of what is observed. bounds and counts: of buckets, the
    last one of which has no bound. is_delta: what has come since the last push.
    """

    number: float
    count: int = 0
    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    is_delta: bool = False

    def after(self, before: SeriesValue | None) -> SeriesValue:
        """Return what the series has come to, behind what it was before."""
        if not self.is_delta:
            return self
        number = self.number if isfinite(self.number) else 0.0
        if before is None or before.bounds != self.bounds:
            return replace(self, number=number)
        counts = tuple(now + then for now, then in zip(self.counts, before.counts, strict=True))
        return SeriesValue(before.number + number, before.count + self.count, self.bounds, counts, is_delta=True)

    @property
    def size_bytes(self) -> int:
        """About the memory of it."""
        return 150 + 50 * len(self.counts)
