"""What a user of one broker notices first: producing, consuming, latency, the start, memory."""

from __future__ import annotations

import socket

from benchmarks.bench import PARTITIONS, Bench, Figures, Measure
from benchmarks.brokers import rss_bytes
from benchmarks.consuming import consume
from benchmarks.first_produce import time_to_first_produce_s
from compat_tests.brokers import answers_api_versions

KILOBYTE_TOPIC = "kilobyte"


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
    consume(bench.broker.bootstrap, KILOBYTE_TOPIC)
    return bench.with_cpu(lambda: {"MB/s": consume(bench.broker.bootstrap, KILOBYTE_TOPIC)})


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


BASICS: dict[str, Measure] = {
    "start to first produce": start,
    "produce 1 kB": produce_1_kb,
    "produce 100 B": produce_100_b,
    "consume 1 kB": consume_1_kb,
    "end-to-end latency": end_to_end_latency,
    "memory after the runs": memory,
    "5,000 idle connections": idle_connections,
}
"""In this order, on one broker, which the first one starts: `consume 1 kB` reads what `produce 1 kB` wrote."""
