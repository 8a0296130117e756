"""Reading: at the end of the log, from the page cache, from the disk, and one old record of a large topic."""

from __future__ import annotations

import statistics
import threading
import time
from random import Random

from confluent_kafka import Consumer, TopicPartition

from benchmarks.bench import PARTITIONS, Bench, Figures
from benchmarks.consuming import consume, end_offsets, evict, new_consumer, partitions_of
from compat_tests.latency_probe import LatencyProbe

LARGE_TOPIC = "large"
LARGE_RECORD_BYTES = 10_000
PROBE_TOPIC = "probe"
IDLE_S = 10.0
LOOKUPS = 20


def tail(bench: Bench) -> Figures:
    """librdkafka at the end of a topic into which ProducerPerformance writes as fast as it can (1 kB, acks=1)."""
    topic = "tail"
    bench.create_topic(topic, PARTITIONS)
    records = bench.count(500_000)
    bootstrap = bench.broker.bootstrap
    config = {"acks": "1", "batch.size": "65536"}
    producing = threading.Thread(target=bench.tools.produce, args=(bootstrap, topic, records, 1000, config))
    producing.start()
    try:
        return bench.with_cpu(lambda: {"MB/s": consume(bootstrap, topic, records=records)})
    finally:
        producing.join()


def fill_large_topic(bench: Bench) -> Figures:
    """ProducerPerformance, 10 GB in 10 kB records, for the measures that follow."""
    bench.create_topic(LARGE_TOPIC, PARTITIONS)
    records = bench.count(1_000_000)
    config = {"acks": "all", "batch.size": "131072"}
    return {"MB/s": bench.tools.produce(bench.broker.bootstrap, LARGE_TOPIC, records, LARGE_RECORD_BYTES, config)}


def catch_up(bench: Bench) -> Figures:
    """2 GB of the large topic by librdkafka: once to bring them into the page cache, and then timed."""
    records = bench.count(200_000)
    bootstrap = bench.broker.bootstrap
    consume(bootstrap, LARGE_TOPIC, records=records)
    return bench.with_cpu(lambda: {"MB/s": consume(bootstrap, LARGE_TOPIC, records=records)})


def cold(bench: Bench) -> Figures:
    """2 GB of the large topic by librdkafka, none of it in the page cache."""
    evict(bench.broker.data_directory, LARGE_TOPIC)
    records = bench.count(200_000)
    return bench.with_cpu(lambda: {"MB/s": consume(bench.broker.bootstrap, LARGE_TOPIC, records=records)})


def latency_beside_cold_reader(bench: Bench) -> Figures:
    """p99 of produce requests, one each 5 ms, without and with somebody who reads the large topic from the disk."""
    bench.create_topic(PROBE_TOPIC, 1)
    with LatencyProbe(bench.broker, PROBE_TOPIC) as probe:
        time.sleep(1)  # the probe's own start is not measured
        idle_from = time.monotonic()
        time.sleep(IDLE_S)
        evict_from = time.monotonic()
        evict(bench.broker.data_directory, LARGE_TOPIC)
        cold_from = time.monotonic()
        consume(bench.broker.bootstrap, LARGE_TOPIC, records=bench.count(600_000))
        cold_to = time.monotonic()
        alone_ms = probe.p99_ms(idle_from, evict_from)
        beside_ms = probe.p99_ms(cold_from, cold_to)
    return {"p99 ms alone": alone_ms, "p99 ms": beside_ms, "p99 beside / alone": beside_ms / alone_ms}


def old_offset_by_time(bench: Bench) -> Figures:
    """A record of the large topic by its time: ListOffsets and the fetch, from a cold page cache; median of 20."""
    consumer = new_consumer(bench.broker.bootstrap, fetch_message_max_bytes=65536, fetch_wait_max_ms=10)
    rng = Random(1)
    try:
        ends = end_offsets(consumer, LARGE_TOPIC)
        first_ms = _timestamp(consumer, TopicPartition(LARGE_TOPIC, 0, 0))
        last_ms = _timestamp(consumer, TopicPartition(LARGE_TOPIC, 0, ends[0] - 1))
        evict(bench.broker.data_directory, LARGE_TOPIC)
        times = []
        for _ in range(LOOKUPS):
            wanted = rng.randint(first_ms, last_ms)
            partition = rng.choice(partitions_of(LARGE_TOPIC))
            started = time.perf_counter()
            partition.offset = wanted
            (found,) = consumer.offsets_for_times([partition], timeout=30)
            assert _timestamp(consumer, found) >= wanted or found.offset < 0
            times.append(time.perf_counter() - started)
        return {"ms": statistics.median(times) * 1000}
    finally:
        consumer.close()


def _timestamp(consumer: Consumer, at: TopicPartition) -> int:
    consumer.assign([at])
    message = consumer.poll(30)
    assert message is not None, f"no record at {at}"
    return message.timestamp()[1]


FETCHES = {
    "fetch: tail": tail,
    "produce 10 GB": fill_large_topic,
    "fetch: catch-up": catch_up,
    "fetch: cold": cold,
    "produce beside a cold reader": latency_beside_cold_reader,
    "an old offset by time": old_offset_by_time,
}
"""In this order: the topic that the second one fills is read by the others."""
