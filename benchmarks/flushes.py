"""Records that are on the disk before they are acknowledged: `flush.messages=1` and many small producers."""

from __future__ import annotations

import time
from functools import partial

from confluent_kafka import KafkaError, Message, Producer

from benchmarks.bench import PARTITIONS, Bench, Figures

PRODUCERS = 64
VALUE = bytes(1000)
TOPIC = "flushed"
DEADLINE_S = 120.0


def flush_every_message(bench: Bench) -> Figures:
    """64 librdkafka producers, acks=all, each sends its next 1 kB record when the last one is acknowledged."""
    bench.create_topic(TOPIC, PARTITIONS, {"flush.messages": "1"})
    total = bench.count(30_000)
    config = {"bootstrap.servers": bench.broker.bootstrap, "acks": "all", "linger.ms": 0}
    producers = [Producer(config) for _ in range(PRODUCERS)]
    sent = delivered = 0

    def send(producer: Producer) -> None:
        nonlocal sent
        sent += 1
        producer.produce(TOPIC, VALUE, partition=sent % PARTITIONS, on_delivery=partial(on_delivery, producer))

    def on_delivery(producer: Producer, error: KafkaError | None, _message: Message) -> None:
        nonlocal delivered
        assert error is None, error
        delivered += 1
        if sent < warm_up + total:
            send(producer)

    def run_until(count: int) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while delivered < count:
            if sum(producer.poll(0) for producer in producers) == 0:
                producers[0].poll(0.0005)
            assert time.monotonic() < deadline, f"{delivered} of {count} records in {DEADLINE_S:g} s"

    warm_up = 10 * PRODUCERS
    for producer in producers:
        send(producer)
    run_until(warm_up)
    started = time.perf_counter()
    run_until(warm_up + total)
    return {"records/s": total / (time.perf_counter() - started)}
