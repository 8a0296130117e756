"""Records by periods of time, as long as they must be for few rows: producers may send any timestamps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .report import PeriodReport
from .tables import Kind, Sums, Table

HOURS = (1, 24, 168, 672, 8736, 87_360, 8_736_000, 1_747_200_000)
"""Lengths: hour, day, week, four weeks, 52 weeks, ten, a thousand and 200,000 times as long; multiples of those before.

Of the longest, four have all timestamps that Spark knows.
"""
MOST_PERIODS = 100_000
_HOUR_US = 3_600_000_000
_HOUR_MS = 3_600_000


class Periods:
    """Rows of a period and a partition; a longer length where there are more of them than `MOST_PERIODS`. At the
    longest, none is left out.
    """

    def __init__(self) -> None:
        self._level = 0
        self._sums = Sums(Kind.PERIODS, 3)

    @property
    def hours(self) -> int:
        return HOURS[self._level]

    @property
    def table(self) -> Table:
        return self._sums.combine()

    def add_records(self, partition: NDArray[np.int64], time: NDArray[np.int64], size: NDArray[np.int64]) -> None:
        """Count records by their times, which are in microseconds."""
        start = time // (_HOUR_US * self.hours)
        self._add(np.stack([np.full_like(start, self._level), start, partition, np.ones_like(start), size]))

    def add_table(self, table: Table) -> None:
        """A table of another task."""
        if not table.shape[1]:
            return
        level = int(table[0, 0])
        while self._level < level:
            self._lengthen()
        self._add(_longer(table, level, self._level))

    def _add(self, table: Table) -> None:
        self._sums.add(table)
        while (
            self._level < len(HOURS) - 1
            and self._sums.rows > MOST_PERIODS
            and self._sums.combine().shape[1] > MOST_PERIODS
        ):
            self._lengthen()

    def _lengthen(self) -> None:
        table = self._sums.take()
        self._level += 1
        self._sums.add(_longer(table, self._level - 1, self._level))


def _longer(table: Table, level: int, to_level: int) -> Table:
    if level == to_level:
        return table
    found = table.copy()
    found[0] = to_level
    found[1] //= HOURS[to_level] // HOURS[level]
    return found


def reports(table: Table) -> list[PeriodReport]:
    """The reports, by time and partition."""
    found = [
        PeriodReport(start * HOURS[level] * _HOUR_MS, partition, records, size)
        for level, start, partition, records, size in table.T.tolist()
    ]
    return sorted(found, key=lambda each: (each.start_ms, each.partition))
