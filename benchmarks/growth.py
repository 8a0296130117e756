"""Growth curves: what a batch, a request or a record costs the broker while partitions, clients or records grow.

The load stays the same at each point of a curve; the figure is CPU time of the broker. A curve is flat where its
figure `most / first` is 1.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

from benchmarks.bench import PARTITIONS as TOPIC_PARTITIONS
from benchmarks.bench import Bench, Figures, Measure
from benchmarks.brokers import cpu_seconds
from benchmarks.curves import curve_point
from benchmarks.growing import curve, points, seconds
from benchmarks.measured_load import Given, load
from benchmarks.member_growth import MEMBER_GROWTH, MEMBER_PROPERTIES
from benchmarks.starts import wait_for_leaders

PARTITIONS = (1, 10, 100, 1_000, 10_000)
CLIENTS = (10, 100, 1_000, 5_000)
RECORDS = (1, 10, 100, 1_000, 10_000)
SIXTEEN_KB: dict[str, int | str] = {"records": 160, "size": 100}
SMALL: dict[str, int | str] = {"records": 1, "size": 100, "in-flight": 1}
MOST_BATCHES = 100
"""In a request."""
PARTITIONS_AT_ONCE = 1_000
"""Kafka's controller takes so many in a request, and not many more."""
WARM_S = 2.0
FIRST_S_PER_PARTITION = 0.001
"""Until each partition of a topic has been written to once."""
IDLE_SHARE = 0.05
"""Of a processor: a broker that takes less, look after look, has nothing to do any more for what was written."""
LOOK_S = 0.5
IDLE_LOOKS = 4
IDLE_DEADLINE_S = 90.0
SMALL_RECORD_BYTES = 50
"""10,000 of these are a batch of half a megabyte."""

_numbers = itertools.count(1)


def partitions_of_wide_requests(bench: Bench) -> Figures:
    """Batches of 16 kB, in requests for up to 100 partitions, which go round all partitions of the topic."""

    def cost(count: int) -> Given:
        batches = min(count, MOST_BATCHES)
        return _produce(bench, count, SIXTEEN_KB | {"batches": batches})

    given = _each(PARTITIONS, bench, cost)
    return curve("CPU µs/batch", {count: of.cpu_s * 1e6 / of.batches for count, of in given.items()})


def partitions_of_narrow_requests(bench: Bench) -> Figures:
    """Batches of 16 kB, one in a request, which go round all partitions of the topic."""
    given = _each(PARTITIONS, bench, lambda count: _produce(bench, count, SIXTEEN_KB))
    return curve("CPU µs/batch", {count: of.cpu_s * 1e6 / of.batches for count, of in given.items()})


def clients(bench: Bench) -> Figures:
    """Clients that produce one record of 100 B each, wait for the answer, and produce the next one."""
    given = _each(CLIENTS, bench, lambda count: _produce(bench, TOPIC_PARTITIONS, SMALL | {"clients": count}))
    costs = curve("CPU µs/request", {count: of.cpu_s * 1e6 / of.requests for count, of in given.items()})
    return costs | {curve_point("p99 ms", count): of.latency_ms["p99"] for count, of in given.items()}


def records(bench: Bench) -> Figures:
    """Batches of 1 to 10,000 records of 50 B, one in a request."""

    def cost(count: int) -> Given:
        return _produce(bench, TOPIC_PARTITIONS, {"records": count, "size": SMALL_RECORD_BYTES})

    given = _each(RECORDS, bench, cost)
    per_record = curve("CPU µs/record", {count: of.cpu_s * 1e6 / of.records for count, of in given.items()})
    return per_record | curve("CPU µs/batch", {count: of.cpu_s * 1e6 / of.batches for count, of in given.items()})


def _each(full: tuple[int, ...], bench: Bench, measure: Callable[[int], Given]) -> dict[int, Given]:
    sizes = points(full, bench.scale)
    measure(sizes[1])  # Kafka's code is compiled meanwhile: the first point would be charged for that
    return {size: measure(size) for size in sizes}


def _produce(bench: Bench, partitions: int, flags: dict[str, int | str]) -> Given:
    """To a topic of its own, which is deleted thereafter."""
    topic = f"growth-{next(_numbers)}"
    bench.create_topic(topic, min(partitions, PARTITIONS_AT_ONCE))
    for total in range(2 * PARTITIONS_AT_ONCE, partitions + 1, PARTITIONS_AT_ONCE):
        bench.add_partitions(topic, total)
    wait_for_leaders(bench.broker, topic, partitions)
    if partitions > TOPIC_PARTITIONS:
        # Files are made, and made durable, with the first records of a partition: once, however many there will be.
        load(bench, "produce", topic, seconds=partitions * FIRST_S_PER_PARTITION, warm_s=0, options=flags)
        _wait_until_idle(bench)
    given = load(bench, "produce", topic, seconds=seconds(bench.scale), warm_s=WARM_S, options=flags)
    bench.delete_topic(topic)
    return given


def _wait_until_idle(bench: Bench) -> None:
    """Whoever waits for a disk takes little between two of its answers, and so one quiet look is not the end."""
    deadline_s = time.monotonic() + IDLE_DEADLINE_S
    idle = 0
    while idle < IDLE_LOOKS:
        before = cpu_seconds(bench.broker)
        time.sleep(LOOK_S)
        idle = idle + 1 if cpu_seconds(bench.broker) - before < IDLE_SHARE * LOOK_S else 0
        assert time.monotonic() < deadline_s, f"{bench.broker.kind} does not come to rest"


PROPERTIES = {
    **MEMBER_PROPERTIES,
    # What one point has written is gone before the next one is measured.
    "log.segment.delete.delay.ms": "500",
}

GROWTH: dict[str, Measure] = {
    "growth: partitions, 100 in a request": partitions_of_wide_requests,
    "growth: partitions, one in a request": partitions_of_narrow_requests,
    "growth: clients": clients,
    "growth: records in a batch": records,
    **MEMBER_GROWTH,
}
