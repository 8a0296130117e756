"""Starts of brokers that have something to open: many partitions after a clean stop, or records that a kill left.

A broker has started when every partition has a leader in an answer to Metadata and that leader answers for its log: one
ListOffsets names them all, and must tell of every record that was acknowledged.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from benchmarks.bench import PARTITIONS, Bench, Figures
from benchmarks.brokers import rss_bytes, spawn
from compat_tests.brokers import BrokerFailed, BrokerProcess
from compat_tests.raw_client import METADATA_VERSION, RawClient, Refused
from pykbroker.protocol.compile import decode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

MANY_PARTITIONS = 10_000
PARTITIONS_PER_TOPIC = 1000
"""Kafka's controller takes so many records at a time, and no more."""
RECORD_BYTES = 1000

_LIST_OFFSETS_VERSION = 5
_LATEST = -1
_DEADLINE_S = 300.0
_POLL_INTERVAL_S = 0.02


def clean_start(bench: Bench) -> Figures:
    """10,000 empty partitions in ten topics, a clean stop, a start."""
    broker = bench.broker
    partitions = bench.count(MANY_PARTITIONS)
    topics = _many_topics(partitions)
    created = _timed(lambda: create(bench, topics))
    stopped = _timed(lambda: stop(broker))
    started = start(broker, partitions, records=0)
    figures = {"s": started, "RSS MB": rss_bytes(broker) / 1e6, "creation s": created, "stop s": stopped}
    broker.kill()
    return figures


def start_after_kill(batch_bytes: int) -> Callable[[Bench], Figures]:
    """2 GB by ProducerPerformance, 1 kB, acks=all, 6 partitions: no segment is full, nothing flushed. Then kill -9."""

    def measure(bench: Bench) -> Figures:
        broker = bench.broker
        create(bench, {"unflushed": PARTITIONS})
        records = bench.count(2_000_000)
        config = {"acks": "all", "linger.ms": "5", "batch.size": str(batch_bytes)}
        bench.tools.produce(broker.bootstrap, "unflushed", records, RECORD_BYTES, config)
        broker.kill()
        return {"s": start(broker, PARTITIONS, records), "RSS MB": rss_bytes(broker) / 1e6}

    return measure


def _many_topics(partitions: int) -> dict[str, int]:
    """Topic -> partitions."""
    full, rest = divmod(partitions, PARTITIONS_PER_TOPIC)
    counts = [PARTITIONS_PER_TOPIC] * full + ([rest] if rest else [])
    return {f"many-{number}": count for number, count in enumerate(counts)}


def create(bench: Bench, topics: dict[str, int]) -> None:
    for topic, partitions in topics.items():
        bench.create_topic(topic, partitions)
    _wait_until_all_answer(bench.broker, sum(topics.values()), 0, time.perf_counter())


def stop(broker: BrokerProcess) -> None:
    """It may take longer than a test would wait."""
    assert broker.process is not None
    broker.process.terminate()
    broker.process.wait(_DEADLINE_S)
    broker.process = None


def _timed(step: Callable[[], None]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def start(broker: BrokerProcess, partitions: int, records: int) -> float:
    """Seconds until all partitions answer, with so many records in all of them together. Raises BrokerFailed."""
    started = time.perf_counter()
    spawn(broker)
    return _wait_until_all_answer(broker, partitions, records, started)


def _wait_until_all_answer(broker: BrokerProcess, partitions: int, records: int, started: float) -> float:
    """records: in all of them together."""
    while True:
        with suppress(ConnectionError, Refused), RawClient(broker.address, timeout_s=60) as client:
            found = _records_of_all(client, partitions)
            if found != records:
                raise BrokerFailed(f"{broker.kind} has {found} records, {records} were acknowledged")
            return time.perf_counter() - started
        if time.perf_counter() - started > _DEADLINE_S or (broker.process and broker.process.poll() is not None):
            raise BrokerFailed(f"{broker.kind} does not serve {partitions} partitions:\n{broker.log_tail()}")
        time.sleep(_POLL_INTERVAL_S)


def wait_for_leaders(broker: BrokerProcess, topic: str, partitions: int) -> None:
    """Until each partition's leader answers for its log, which may be a while after Metadata names it. Raises
    BrokerFailed.
    """
    deadline_s = time.perf_counter() + _DEADLINE_S
    asked = [ListOffsetsPartition(partition_index=index, timestamp=_LATEST) for index in range(partitions)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=asked)])
    with RawClient(broker.address, timeout_s=60) as client:
        while time.perf_counter() < deadline_s:
            frame = client.call(encode_request(request, _LIST_OFFSETS_VERSION, 2, "bench"))
            answer, _ = decode(ListOffsetsResponse, _LIST_OFFSETS_VERSION, frame, 4)
            if not any(partition.error_code for partition in answer.topics[0].partitions):
                return
            time.sleep(_POLL_INTERVAL_S)
    raise BrokerFailed(f"{broker.kind} does not serve the {partitions} partitions of {topic}")


def _records_of_all(client: RawClient, partitions: int) -> int:
    """Raises Refused as long as not all of them have a leader that answers."""
    frame = client.call(encode_request(MetadataRequest(topics=None), METADATA_VERSION, 1, "bench"))
    metadata, _ = decode(MetadataResponse, METADATA_VERSION, frame, 4)
    topics = [
        ListOffsetsTopic(
            name=topic.name,
            partitions=[
                ListOffsetsPartition(partition_index=partition.partition_index, timestamp=_LATEST)
                for partition in topic.partitions
                if not partition.error_code
            ],
        )
        for topic in metadata.topics
    ]
    if sum(len(topic.partitions) for topic in topics) < partitions:
        raise Refused("partitions have no leader")
    frame = client.call(encode_request(ListOffsetsRequest(topics=topics), _LIST_OFFSETS_VERSION, 2, "bench"))
    answer, _ = decode(ListOffsetsResponse, _LIST_OFFSETS_VERSION, frame, 4)
    answered = [partition for topic in answer.topics for partition in topic.partitions]
    if any(partition.error_code for partition in answered):
        raise Refused("leaders do not answer")
    return sum(partition.offset for partition in answered)
