"""The table of a run: for every figure what each broker reached, the ratio, and what it must reach."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.bench import Figures
from benchmarks.disturbances import DISTURBANCES
from benchmarks.limit_rows import AIMED, SIZES
from benchmarks.produce_matrix import MATRIX


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


FLAT = (
    ("partitions, 100 in a request", "CPU µs/batch"),
    ("partitions, one in a request", "CPU µs/batch"),
    ("clients", "CPU µs/request"),
    ("members of a consumer group", "CPU µs/heartbeat"),
    ("members of a classic group", "CPU µs/heartbeat"),
    ("size of a log", "CPU µs/fetch"),
    ("size of a log", "CPU µs/lookup by time"),
)
"""What costs the same however much there is of something."""

TARGETS = {
    **{(row, "requests/CPU s"): Target(ratio=1.5, higher=True) for row in AIMED},
    **{(f"cores: {size}", "two cores / one"): Target(absolute=1.7, higher=True) for size in SIZES},
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
    **{(cell, "MB/s"): Target(ratio=1.0, higher=True) for cell in MATRIX},
    **{(cell, "broker CPU s"): Target(ratio=0.7) for cell in MATRIX},
    ("flush.messages=1", "records/s"): Target(ratio=3.0, higher=True),
    **{(f"growth: {what}", f"{cost}, most / first"): Target(absolute=1.25) for what, cost in FLAT},
    **{(f"tail: {name}", f"e2e {late} ms"): Target(ratio=0.5) for name in DISTURBANCES for late in ("p99", "p99.9")},
    ("fetch: tail", "MB/s"): Target(ratio=1.0, higher=True),
    ("fetch: catch-up", "MB/s"): Target(ratio=1.0, higher=True),
    ("fetch: cold", "MB/s"): Target(ratio=1.0, higher=True),
    ("produce beside a cold reader", "p99 beside / alone"): Target(absolute=1.2),
    ("an old offset by time", "ms"): Target(ratio=1.0),
    ("compaction", "MB/s"): Target(ratio=0.5, higher=True),
    ("compaction", "p99 cleaning / idle"): Target(absolute=2.0),
    ("rebalance, classic protocol", "ms"): Target(ratio=1.0),
    ("rebalance, consumer protocol", "ms"): Target(ratio=1.0),
    ("offset commits, 100 consumers", "commits/s"): Target(ratio=1.0, higher=True),
    ("Metadata of 1,000 x 10", "requests/s"): Target(ratio=1.0, higher=True),
    ("Metadata, 200 clients", "requests/s"): Target(ratio=1.0, higher=True),
    ("share group, 4 consumers", "records/s"): Target(ratio=1.0, higher=True),
    ("share group, acknowledgements", "p99 ms"): Target(ratio=1.0),
    ("transactions of 100 records", "transactions/s"): Target(ratio=1.0, higher=True),
    ("transactions of 100 records", "commit p99 ms"): Target(ratio=1.0),
    ("exactly-once copy", "records/s"): Target(ratio=1.0, higher=True),
    ("TLS 1.3: produce 1 kB", "MB/s"): Target(ratio=1.0, higher=True),
    ("TLS 1.3: produce 1 kB", "broker CPU s"): Target(ratio=0.8),
    ("TLS 1.3: consume 1 kB", "MB/s"): Target(ratio=1.0, higher=True),
    ("TLS 1.3: consume 1 kB", "broker CPU s"): Target(ratio=0.8),
    ("TLS 1.3: handshakes", "handshakes/s"): Target(ratio=1.0, higher=True),
    ("SCRAM log-ins", "log-ins/s"): Target(ratio=1.0, higher=True),
    ("5,000 idle TLS connections", "kB each"): Target(absolute=40),
    ("authorizer, 1,000 ACLs and quotas", "on / off"): Target(absolute=0.97, higher=True),
    ("in-process broker", "start to first ack ms"): Target(absolute=50),
    ("in-process broker", "stop ms"): Target(absolute=20),
    ("in-process broker", "import s"): Target(absolute=0.15),
    ("100 tests", "s"): Target(ratio=0.2),
    ("--help", "s"): Target(absolute=0.25),
    ("topics --list", "s"): Target(absolute=0.4),
    ("idle, visited", "RSS MB"): Target(absolute=55),
    ("idle, visited", "% of a core"): Target(absolute=0.5),
    ("metrics scraped each second", "% lost to scrapes"): Target(absolute=3.0),
    ("10,000 groups with 100,000 offsets", "s"): Target(absolute=5.0),
    ("start with 10,000 partitions", "s"): Target(ratio=1.0),
    ("start with 10,000 partitions", "RSS MB"): Target(ratio=0.3),
    ("start after kill -9, 64 kB batches", "s"): Target(ratio=1.0),
    ("start after kill -9, 16 kB batches", "s"): Target(ratio=1.0),
    **{
        (f"spark {work} {size}", figure): target
        for work in ("write", "read", "availableNow")
        for size in ("100 B", "1 kB")
        for figure, target in (("records/s", Target(ratio=1.0, higher=True)), ("broker CPU s", Target(ratio=0.6)))
    },
    ("spark streaming latency", "p99 ms"): Target(ratio=1.0),
    ("spark pipeline, 5 million", "archive / bare speed"): Target(absolute=0.9, higher=True),
    ("spark pipeline, 5 million", "audit / bare speed"): Target(absolute=0.9, higher=True),
    ("spark pipeline, growth", "archive most / at 1 ×"): Target(absolute=1.15),
    ("spark pipeline, growth", "audit most / at 1 ×"): Target(absolute=1.15),
    ("cluster: start to first produce", "s"): Target(absolute=1.5),
    ("cluster: produce 1 kB", "MB/s"): Target(ratio=1.5, higher=True),
    ("cluster: produce 1 kB", "CPU s of all nodes"): Target(ratio=0.6),
    ("cluster: produce 1 kB", "RSS MB of all nodes"): Target(ratio=0.25),
    ("cluster: kill of a leader", "longest gap s"): Target(absolute=2.0),
    ("cluster: kill of a leader, Java producer", "longest gap s"): Target(absolute=2.0),
    ("cluster: kill of the active controller", "s"): Target(ratio=1.0),
    ("cluster: 5,000 partitions", "failover s"): Target(ratio=1.0),
    ("cluster: 5,000 partitions", "start s"): Target(ratio=1.0),
}
MATRIX_MEDIAN = Target(ratio=1.2, higher=True)
"""Of the ratios of all cells."""

Results = dict[str, list[Figures]]
"""measure -> the figures of each round."""


def print_report(ours: Results, theirs: Results, console: Console) -> None:
    table = Table(title="pykbroker beside Apache Kafka: the median of the rounds (least to most)")
    for column in ("measure", "figure", "pykbroker", "Apache Kafka", "ratio", "must reach", ""):
        table.add_column(column, justify="left" if column in ("measure", "figure", "must reach", "") else "right")
    matrix_ratios = []
    for measure, rounds in ours.items():
        for figure in rounds[0]:
            our_rounds, their_rounds = ([row[figure] for row in of] for of in (rounds, theirs[measure]))
            our, their = statistics.median(our_rounds), statistics.median(their_rounds)
            target = TARGETS.get((measure, figure))
            verdict = "" if target is None else "reached" if target.met(our, their) else "FALLS SHORT"
            ratio = f"{our / their:.2f} ×" if their else "-"
            bound = "" if target is None else str(target)
            table.add_row(measure, figure, _with_spread(our_rounds), _with_spread(their_rounds), ratio, bound, verdict)
            if measure in MATRIX and figure == "MB/s":
                matrix_ratios.append(our / their)
    if matrix_ratios:
        median = statistics.median(matrix_ratios)
        verdict = "reached" if MATRIX_MEDIAN.met(median, 1.0) else "FALLS SHORT"
        table.add_row("produce, all cells", "median of MB/s", "", "", f"{median:.2f} ×", str(MATRIX_MEDIAN), verdict)
    console.print(table)


def _with_spread(rounds: list[float]) -> str:
    median = f"{statistics.median(rounds):.3g}"
    return median if len(rounds) == 1 else f"{median} ({min(rounds):.3g} to {max(rounds):.3g})"
