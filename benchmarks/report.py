"""The table of a run: for every figure what each broker reached, the ratio, and what it must reach."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.measures import Figures


@dataclass(frozen=True, slots=True)
class Target:
    """ratio: bound on pykbroker / Apache Kafka. absolute: bound on pykbroker's own figure. higher: more is better."""

    ratio: float | None = None
    absolute: float | None = None
    higher: bool = False

    def met(self, ours: float, theirs: float) -> bool:
        if self.ratio is not None and not self._within(ours / theirs if theirs else 0.0, self.ratio):
            return False
        return self.absolute is None or self._within(ours, self.absolute)

    def _within(self, value: float, bound: float) -> bool:
        return value >= bound if self.higher else value <= bound

    def __str__(self) -> str:
        sign = "≥" if self.higher else "≤"
        parts = [f"{sign} {self.absolute:g}"] if self.absolute is not None else []
        parts += [f"{sign} {self.ratio:g} ×"] if self.ratio is not None else []
        return ", ".join(parts)


TARGETS = {
    ("produce 1 kB", "MB/s"): Target(ratio=1.2, higher=True),
    ("produce 1 kB", "broker CPU s"): Target(ratio=0.7),
    ("produce 100 B", "MB/s"): Target(ratio=1.0, higher=True),
    ("consume 1 kB", "MB/s"): Target(ratio=1.0, higher=True),
    ("consume 1 kB", "broker CPU s"): Target(ratio=1.0),
    ("end-to-end latency", "p50 ms"): Target(ratio=1.0),
    ("end-to-end latency", "p99 ms"): Target(ratio=1.0),
    ("start to first produce", "s"): Target(ratio=0.3, absolute=0.6),
    ("memory after the runs", "RSS MB"): Target(absolute=80),
    ("5,000 idle connections", "kB each"): Target(absolute=15),
}

Results = dict[str, list[Figures]]
"""measure -> the figures of each round."""


def print_report(ours: Results, theirs: Results, console: Console) -> None:
    table = Table(title="pykbroker beside Apache Kafka: the median of the rounds")
    for column in ("measure", "figure", "pykbroker", "Apache Kafka", "ratio", "must reach", ""):
        table.add_column(column, justify="left" if column in ("measure", "figure", "must reach", "") else "right")
    for measure, rounds in ours.items():
        for figure in rounds[0]:
            our = statistics.median(row[figure] for row in rounds)
            their = statistics.median(row[figure] for row in theirs[measure])
            target = TARGETS.get((measure, figure))
            verdict = "" if target is None else "reached" if target.met(our, their) else "FALLS SHORT"
            ratio = f"{our / their:.2f} ×" if their else "-"
            bound = "" if target is None else str(target)
            table.add_row(measure, figure, f"{our:.3g}", f"{their:.3g}", ratio, bound, verdict)
    console.print(table)
