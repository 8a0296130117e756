"""The broker's limit: as much as it takes of one kind of request, from a client that costs less than the broker.

Figures are per second of the broker's processors, which is what a row is about, and per second of the clock, where the
client takes part of the same machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from benchmarks.bench import PARTITIONS, Bench, Figures, Measure
from benchmarks.limit_rows import FETCH_ROWS, PRODUCE_ROWS, Options
from benchmarks.measured_load import Given, load
from benchmarks.present_memory import make_memory_present
from benchmarks.starts import wait_for_leaders
from compat_tests.brokers import BrokerProcess

SECONDS = 3.0
LEAST_SECONDS = 1.0
WARM_S = 2.0
FIRST_WARM_S = 30.0
"""After a start: Kafka's code is compiled meanwhile."""
MOST_BYTES = 3_000_000_000
"""Of a row, its warm-up included, so that what it writes fits into the memory that is present."""
WARM_BYTES = 1_000_000_000
"""Of each size of requests in the first warm-up."""
STORED_BYTES = 600_000_000
"""What a row of fetches finds in its topic, in all partitions."""
STORE_S = 60.0
PERCENTILES = ("p50", "p99", "p99.9")
PROPERTIES: Mapping[str, str] = {"log.segment.bytes": str(1 << 30), "log.segment.delete.delay.ms": "500"}

_numbers = itertools.count(1)


def warm_up(bench: Bench) -> Figures:
    """Requests of all sizes in turn, until a broker that compiles its code while it runs has done so."""
    rows = list(PRODUCE_ROWS.values())[:5]
    topic = _new_topic(bench, PARTITIONS, wait_for_leaders)
    requests = 0
    for row in rows:
        options = row | {"most-bytes": WARM_BYTES}
        requests += load(bench, "produce", topic, seconds=FIRST_WARM_S / len(rows), warm_s=0, options=options).requests
    load(bench, "fetch", topic, seconds=FIRST_WARM_S / len(rows), warm_s=0)
    bench.delete_topic(topic)
    return {"requests": float(requests)}


def produce(row: Options, wait: Callable[[BrokerProcess, str, int], None] = wait_for_leaders) -> Measure:
    """wait: until the topic of so many partitions is served."""

    def measure(bench: Bench) -> Figures:
        make_memory_present(bench.broker.directory)
        topic = _new_topic(bench, int(row.get("partitions", PARTITIONS)), wait)
        options = {name: value for name, value in row.items() if name != "partitions"} | {"most-bytes": MOST_BYTES}
        given = load(bench, "produce", topic, seconds=_seconds(bench), warm_s=WARM_S, options=options)
        bench.delete_topic(topic)
        return _figures(given)

    return measure


def fetch(partitions: int, row: Options) -> Measure:
    def measure(bench: Bench) -> Figures:
        make_memory_present(bench.broker.directory)
        topic = _new_topic(bench, partitions, wait_for_leaders)
        stored: Options = {"records": 16, "size": 1_000, "batches": partitions, "most-bytes": STORED_BYTES}
        load(bench, "produce", topic, seconds=STORE_S, warm_s=0, options=stored)
        given = load(bench, "fetch", topic, seconds=_seconds(bench), warm_s=WARM_S, options=row)
        bench.delete_topic(topic)
        return _figures(given)

    return measure


def _new_topic(bench: Bench, partitions: int, wait: Callable[[BrokerProcess, str, int], None]) -> str:
    topic = f"limit-{next(_numbers)}"
    bench.create_topic(topic, partitions)
    wait(bench.broker, topic, partitions)
    return topic


def _seconds(bench: Bench) -> float:
    return max(SECONDS * min(bench.scale, 1.0), LEAST_SECONDS)


def _figures(given: Given) -> Figures:
    return {
        "requests/CPU s": given.requests / given.cpu_s,
        "MB/CPU s": given.bytes / 1e6 / given.cpu_s,
        "requests/s": given.requests / given.seconds,
        "MB/s": given.bytes / 1e6 / given.seconds,
        **{f"{name} ms": given.latency_ms[name] for name in PERCENTILES if given.latency_ms},
    }


LIMITS: dict[str, Measure] = {
    "limit: warm-up": warm_up,
    **{name: produce(row) for name, row in PRODUCE_ROWS.items()},
    **{name: fetch(partitions, row) for name, (partitions, row) in FETCH_ROWS.items()},
}
