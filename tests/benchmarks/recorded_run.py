"""A run with a row of each kind, small enough to read: what the page and the file of results are tested with."""

from __future__ import annotations

from benchmarks.results import (
    VERSION,
    HotFunction,
    Machine,
    ProfileResult,
    Row,
    RunResults,
    TargetResult,
)

HOT = HotFunction("_Appends.run (pykbroker/api/produce.py)", 0.25, 0.5)
PROFILE = ProfileResult("pykbroker-1", 400, "profiles/produce/pykbroker-1.stacks", None, (HOT,))
GROWN_TO = (1, 100, 10_000)
ROWS = (
    Row(
        "limits", "produce <1 kB>", "Batches & requests.",
        tuple({"MB/s": speed, "broker CPU s": cpu} for speed, cpu in ((300.0, 1.0), (330.0, 1.1), (310.0, 1.5))),
        ({"MB/s": 220.0, "broker CPU s": 1.0}, {"MB/s": 230.0, "broker CPU s": 1.1}),
        (
            TargetResult("MB/s", 1.5, None, True, "falls short"),
            TargetResult("broker CPU s", None, 2.0, False, "reached"),
        ),
        (PROFILE,),
    ),
    Row(
        "growth", "growth: partitions", "",
        tuple({f"CPU µs/batch at {size}": cost * size**0.1 for size in GROWN_TO} for cost in (20.0, 25.0)),
        tuple({f"CPU µs/batch at {size}": cost * size**0.2 for size in GROWN_TO} for cost in (21.0, 22.0)),
        (), (),
    ),
    Row(
        "tails", "beside a rebalance", "",
        ({"produce p50 ms": 1.0, "produce p99 ms": 5.0, "produce p99.9 ms": 20.0},), (),
        (TargetResult("produce p99.9 ms", None, 30.0, False, "reached"),), (),
    ),
)  # fmt: skip
RUN = RunResults(
    VERSION, "2026-01-31T12:00:00Z", "2026-01-31T13:00:00Z", 3, 1.0, "0123456789abcdef+",
    {"pykbroker": "0.1.0", "Apache Kafka": "4.3.1"}, Machine(2, "A processor", 8_000_000_000, "Linux 6.1"), ROWS,
)  # fmt: skip
