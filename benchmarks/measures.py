"""What is measured: each measure does its work against one running broker and returns named figures."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.brokers import cpu_seconds, rss_bytes
from benchmarks.first_produce import time_to_first_produce_s
from benchmarks.java_tools import JavaTools
from compat_tests.brokers import BrokerProcess, answers_api_versions

Figures = dict[str, float]
PARTITIONS = 6
KILOBYTE_TOPIC = "kilobyte"


@dataclass(frozen=True, slots=True)
class Bench:
    """What a measure needs. scale: 1.0 is the full amount of work."""

    broker: BrokerProcess
    tools: JavaTools
    scale: float

    def count(self, full: int) -> int:
        return max(int(full * self.scale), 1000)

    def create_topic(self, topic: str, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            future.result(30)

    def with_cpu(self, work: Callable[[], Figures]) -> Figures:
        before = cpu_seconds(self.broker)
        figures = work()
        return {**figures, "broker CPU s": cpu_seconds(self.broker) - before}


def produce_1_kb(bench: Bench) -> Figures:
    """ProducerPerformance, 1 kB, acks=all, linger 5, batch 64 KiB, idempotent, 6 partitions."""
    bench.create_topic(KILOBYTE_TOPIC, PARTITIONS)
    config = {"acks": "all", "linger.ms": "5", "batch.size": "65536"}
    records = bench.count(1_000_000)
    tools, bootstrap = bench.tools, bench.broker.bootstrap
    return bench.with_cpu(lambda: {"MB/s": tools.produce(bootstrap, KILOBYTE_TOPIC, records, 1000, config)})


def produce_100_b(bench: Bench) -> Figures:
    """ProducerPerformance, 100 B, the client's defaults, 6 partitions."""
    bench.create_topic("hundred-bytes", PARTITIONS)
    records = bench.count(3_000_000)
    tools, bootstrap = bench.tools, bench.broker.bootstrap
    return bench.with_cpu(lambda: {"MB/s": tools.produce(bootstrap, "hundred-bytes", records, 100, {})})


def consume_1_kb(bench: Bench) -> Figures:
    """librdkafka, 6 assigned partitions, what `produce_1_kb` wrote, once to warm the page cache and then timed."""
    _consume_all(bench.broker.bootstrap, KILOBYTE_TOPIC)
    return bench.with_cpu(lambda: {"MB/s": _consume_all(bench.broker.bootstrap, KILOBYTE_TOPIC)})


def end_to_end_latency(bench: Bench) -> Figures:
    """EndToEndLatency, 100 B, acks=all."""
    bench.create_topic("latency", 1)
    p50, p99 = bench.tools.end_to_end_latency(bench.broker.bootstrap, "latency", bench.count(10_000), 100)
    return {"p50 ms": p50, "p99 ms": p99}


def memory(bench: Bench) -> Figures:
    """Resident memory after all that ran before on this broker."""
    return {"RSS MB": rss_bytes(bench.broker) / 1e6}


def idle_connections(bench: Bench) -> Figures:
    """5,000 connections that say nothing."""
    count = 5000
    before = rss_bytes(bench.broker)
    connections = [socket.create_connection(bench.broker.address) for _ in range(count)]
    try:
        assert answers_api_versions(bench.broker.address)  # it has taken those before, too
        return {"kB each": (rss_bytes(bench.broker) - before) / count / 1e3}
    finally:
        for connection in connections:
            connection.close()


def start(bench: Bench) -> Figures:
    """From the process's start in an empty directory to the first acknowledged produce (its topic made on the way)."""
    return {"s": time_to_first_produce_s(bench.broker)}


STEADY: dict[str, Callable[[Bench], Figures]] = {
    "produce 1 kB": produce_1_kb,
    "produce 100 B": produce_100_b,
    "consume 1 kB": consume_1_kb,
    "end-to-end latency": end_to_end_latency,
    "memory after the runs": memory,
    "5,000 idle connections": idle_connections,
}
"""In this order, on one broker: `consume 1 kB` reads what `produce 1 kB` wrote."""


def _consume_all(bootstrap: str, topic: str) -> float:
    """Reads a topic to its end; returns MB/s of record values (1 MB = 2**20 bytes), from the first record on."""
    config: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.message.max.bytes": 8 << 20,
        "queued.max.messages.kbytes": 256 << 10,
    }
    consumer = Consumer(config)
    try:
        partitions = [TopicPartition(topic, index, 0) for index in range(PARTITIONS)]
        remaining = sum(consumer.get_watermark_offsets(partition, timeout=30)[1] for partition in partitions)
        consumer.assign(partitions)
        started = None
        size = 0
        while remaining:
            messages = consumer.consume(10_000, timeout=30)
            if not messages:
                raise TimeoutError(f"{remaining} records of {topic} did not come within 30 s")
            started = started or time.perf_counter()
            remaining -= len(messages)
            size += sum(len(message) for message in messages)
        assert started is not None, f"{topic} is empty"
        return size / (time.perf_counter() - started) / 2**20
    finally:
        consumer.close()
