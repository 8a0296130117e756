"""Tails: how late records are at 5,000 a second, while the broker has something else to do as well.

A record is late from the moment at which it was due, whether or not the producer could send it then: a broker that
stops for 100 ms is charged for each of the 500 records that came meanwhile.
"""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

from benchmarks.bench import Bench, Figures, Measure
from benchmarks.disturbances import DISTURBANCES, Disturbance
from benchmarks.measured_load import load

SECONDS = 10.0
LEAST_SECONDS = 3.0
WARM_S = 3.0
FIRST_WARM_S = 10.0
"""After a start: Kafka's code is compiled meanwhile."""
RATE = 5_000
AT_ONCE = 5
"""A batch of so many is due each millisecond; one more or less of them falls into the measured seconds."""
END_S = 60.0
PROPERTIES = {
    # What happens once in minutes happens within the measured seconds.
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "500",
    "log.cleaner.backoff.ms": "100",
}
PERCENTILES = ("p50", "p99", "p99.9", "max")

_numbers = itertools.count(1)


def beside(disturbance: Disturbance, warm_s: float = WARM_S) -> Measure:
    def measure(bench: Bench) -> Figures:
        if disturbance.properties:
            _start_anew(bench, disturbance)
        if disturbance.prepare is not None:
            disturbance.prepare(bench)
        topic = f"steady-{next(_numbers)}"
        bench.create_topic(topic, 1, disturbance.topic)
        seconds = max(SECONDS * min(bench.scale, 1.0), LEAST_SECONDS)
        ended = threading.Event()
        with ThreadPoolExecutor(1) as threads:
            work = threads.submit(disturbance.work, bench, ended)
            try:
                given = load(bench, "steady", topic, seconds=seconds, warm_s=warm_s, options={"rate": RATE})
            finally:
                ended.set()
            assert work.result(END_S) > 0, "what the load was measured beside has not happened"
        bench.delete_topic(topic)
        due = RATE * seconds
        assert abs(given.records - due) <= AT_ONCE, f"{given.records} of {due:.0f} records came"
        figures = {f"produce {name} ms": given.latency_ms[name] for name in PERCENTILES}
        figures |= {f"e2e {name} ms": given.end_to_end_ms[name] for name in PERCENTILES}
        return figures | {"broker CPU %": 100 * given.cpu_s / seconds}

    measure.__doc__ = disturbance.work.__doc__
    return measure


def _start_anew(bench: Bench, disturbance: Disturbance) -> None:
    broker = bench.broker
    broker.stop()
    broker.properties |= disturbance.properties
    broker.write_properties()
    broker.start()


TAILS: dict[str, Measure] = {
    f"tail: {name}": beside(disturbance, FIRST_WARM_S if name == "alone" or disturbance.properties else WARM_S)
    for name, disturbance in DISTURBANCES.items()
}
