"""The cost of the journal: a producer of 1 kB records beside a broker with a journal and one without, in turns.

Both brokers are in this process, the producer is librdkafka's, which leaves the interpreter to the broker. Small
batches are a request for each few records, which is where a journal costs most. The processor time of the broker's
thread tells the same on a machine that has other things to do.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from confluent_kafka import Producer

from benchmarks.bench import Bench, Figures
from compat_tests.brokers import Pykbroker
from pykbroker.testing import Broker

_RECORD = b"x" * 1000
_RECORDS = 40_000
_TURNS = 15
_WAIT_S = 120
_BATCHES = {"1 MB batches": 1_000_000, "16 kB batches": 16_384}


@dataclass(frozen=True, slots=True)
class _Run:
    """One turn. loop_s: the processor time of the broker's thread."""

    took_s: float
    loop_s: float


def journal_cost(bench: Bench) -> Figures:
    """Compare each turn with the one beside it. Apache Kafka has no journal: its figures are 0."""
    names = ["MB/s with", "% lost", "% more CPU"]
    if not isinstance(bench.broker, Pykbroker):
        return {f"{name}, {batches}": 0.0 for batches in _BATCHES for name in names}
    records = max(int(_RECORDS * bench.scale), 1_000)
    figures: Figures = {}
    with Broker() as recording, Broker(journal=False) as plain:
        for batches, batch_bytes in _BATCHES.items():
            runs: dict[bool, list[_Run]] = {True: [], False: []}
            for turn in range(2 * _TURNS + 2):
                is_recording = bool(turn % 2)
                run = _produce(recording if is_recording else plain, records, batch_bytes)
                if turn > 1:  # the first ones warm up
                    runs[is_recording].append(run)
            pairs = list(zip(runs[True], runs[False], strict=True))
            lost = statistics.median(1 - off.took_s / on.took_s for on, off in pairs)
            more = statistics.median(on.loop_s / off.loop_s - 1 for on, off in pairs)
            values = [records / min(run.took_s for run in runs[True]) / 1000, lost * 100, more * 100]
            figures |= {f"{name}, {batches}": value for name, value in zip(names, values, strict=True)}
    return figures


def _produce(broker: Broker, records: int, batch_bytes: int) -> _Run:
    topic = broker.create_topic(f"produced-{time.monotonic_ns()}")
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "batch.size": batch_bytes,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.produce(topic, b"first")
    assert producer.flush(_WAIT_S) == 0
    loop_before_s, began = broker.running_loop().call(_thread_time), time.perf_counter()
    for _ in range(records):
        producer.produce(topic, _RECORD)
    assert producer.flush(_WAIT_S) == 0
    run = _Run(time.perf_counter() - began, broker.running_loop().call(_thread_time) - loop_before_s)
    assert topic.end_offsets() == {0: records + 1}
    topic.delete()
    return run


async def _thread_time() -> float:
    return time.thread_time()
