"""The cost of the journal: a producer of 1 kB records beside a broker with a journal and one without, in turns.

Both brokers are in this process, the producer is librdkafka's, which leaves the interpreter to the broker. Small
batches are a request for each few records, which is where a journal costs most.
"""

from __future__ import annotations

import statistics
import time

from confluent_kafka import Producer

from benchmarks.bench import Bench, Figures
from compat_tests.brokers import Pykbroker
from pykbroker.testing import Broker

_RECORD = b"x" * 1000
_RECORDS = 60_000
_TURNS = 7
_WAIT_S = 120
_BATCHES = {"1 MB batches": 1_000_000, "16 kB batches": 16_384}


def journal_cost(bench: Bench) -> Figures:
    """Compare the CPU-bound throughput of both. Apache Kafka has no journal: its figures are 0."""
    if not isinstance(bench.broker, Pykbroker):
        return {f"% lost, {name}": 0.0 for name in _BATCHES}
    records = max(int(_RECORDS * bench.scale), 1_000)
    figures: Figures = {}
    with Broker() as recording, Broker(journal=False) as plain:
        for name, batch_bytes in _BATCHES.items():
            took: dict[bool, list[float]] = {True: [], False: []}
            for turn in range(2 * _TURNS + 2):
                is_recording = bool(turn % 2)
                seconds = _produce(recording if is_recording else plain, records, batch_bytes)
                if turn > 1:  # the first ones warm up
                    took[is_recording].append(seconds)
            on, off = statistics.median(took[True]), statistics.median(took[False])
            figures[f"MB/s with, {name}"] = records / on / 1000
            figures[f"% lost, {name}"] = (1 - off / on) * 100
    return figures


def _produce(broker: Broker, records: int, batch_bytes: int) -> float:
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
    began = time.perf_counter()
    for _ in range(records):
        producer.produce(topic, _RECORD)
    assert producer.flush(_WAIT_S) == 0
    took = time.perf_counter() - began
    assert topic.end_offsets() == {0: records + 1}
    topic.delete()
    return took
