"""Work of a broker beside which a steady load is measured: each of these goes on until it is told to end.

None of them asks for all that the broker can do, but for the readers: what is measured is a broker that has something
else to do, not one that is overloaded.
"""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import trio
from confluent_kafka import Producer

from benchmarks.bench import PARTITIONS, Bench
from benchmarks.classic_members import ClassicMember, connections, run_together, settle
from benchmarks.consuming import consume, evict
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

Work = Callable[[Bench, threading.Event], int]
"""Goes on until the event is set; returns how often it did what it does."""

SMALLEST_SEGMENT = 1 << 20
CHANGED_PARTITIONS = 100
MANY_TOPICS = 20
MANY_TOPIC_PARTITIONS = 50
CONNECTIONS = 5_000
CONNECTIONS_AT_ONCE = 50
BETWEEN_CONNECTIONS_S = 0.05
MEMBERS = 50
MEMBERS_PARTITIONS = 200
BETWEEN_REBALANCES_S = 0.2
SNAPSHOT_AFTER_BYTES = 20_000
LONG_VALUE = "x" * 2_000
BETWEEN_CHANGES_S = 0.05
KEYS = 100_000
KEYED_BYTES = 1_000
KEYED_AT_ONCE = 2_000
BETWEEN_KEYED_S = 0.4
COLD_RECORDS = 500_000
COLD_RECORD_BYTES = 1_000
_METADATA_VERSION = 12
_RECEIVED_AT_ONCE = 1 << 16


def nothing(bench: Bench, ended: threading.Event) -> int:
    ended.wait()
    return 1


@dataclass(frozen=True, slots=True)
class Disturbance:
    """work: what goes on beside the load. prepare: what is there before. topic: configuration of the load's own topic.
    properties: of the broker, which is started anew with them.
    """

    work: Work = nothing
    prepare: Callable[[Bench], None] | None = None
    topic: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)


def many_topics(bench: Bench) -> None:
    for number in range(MANY_TOPICS):
        bench.create_topic(f"many-{number}", MANY_TOPIC_PARTITIONS)


def open_and_close(bench: Bench, ended: threading.Event) -> int:
    """Connections that ask for a topic's Metadata, a thousand a second, up to 5,000; and closes them all."""
    asked = [MetadataRequestTopic(name="many-0")]
    request = encode_request(MetadataRequest(topics=asked), _METADATA_VERSION, 1, "bench")
    opened: list[socket.socket] = []
    count = 0
    try:
        while not ended.wait(BETWEEN_CONNECTIONS_S):
            if len(opened) >= CONNECTIONS:
                _close(opened)
            for _ in range(CONNECTIONS_AT_ONCE):
                connection = socket.create_connection(bench.broker.address)
                opened.append(connection)
                connection.sendall(request)
            for connection in opened[-CONNECTIONS_AT_ONCE:]:
                assert connection.recv(_RECEIVED_AT_ONCE), "the broker closed a connection"
                count += 1
    finally:
        _close(opened)
    return count


def _close(opened: list[socket.socket]) -> None:
    for connection in opened:
        connection.close()
    opened.clear()


def create_and_delete(bench: Bench, ended: threading.Event) -> int:
    """Topics of 100 partitions, one after another."""
    for number in itertools.count():
        if ended.is_set():
            return number
        topic = f"changed-{number}"
        bench.create_topic(topic, CHANGED_PARTITIONS)
        bench.delete_topic(topic)
    raise AssertionError("numbers do not end")


def change_configs(bench: Bench, ended: threading.Event) -> int:
    """2 kB of metadata twenty times a second: a snapshot, of all topics, after each ten of them."""
    count = 0
    while not ended.wait(BETWEEN_CHANGES_S):
        # A key that nobody reads here: replicas that may be behind are of other nodes.
        value = f"1:{count % 1_000}" + ",1:1000" * (len(LONG_VALUE) // 7)
        bench.configure_topic("many-0", {"follower.replication.throttled.replicas": value})
        count += 1
    return count


def rebalance(bench: Bench, ended: threading.Event) -> int:
    """A classic group of fifty, whose members all join again five times a second."""
    bench_topic = f"rebalanced-{uuid4()}"
    bench.create_topic(bench_topic, MEMBERS_PARTITIONS)
    return trio.run(_rebalance, bench, bench_topic, ended)


async def _rebalance(bench: Bench, topic: str, ended: threading.Event) -> int:
    group_id = f"group-{uuid4()}"
    count = 0
    async with connections(bench.broker.address, group_id, MEMBERS) as opened:
        members = [ClassicMember(connection, group_id, topic, MEMBERS_PARTITIONS) for connection in opened]
        await settle(members)
        while not ended.is_set():
            await run_together([member.rebalance for member in members])
            count += 1
            await trio.sleep(BETWEEN_REBALANCES_S)
    return count


def keyed_records(bench: Bench) -> None:
    """100 MB, each key twice."""
    config = {"segment.bytes": str(SMALLEST_SEGMENT * 8), "cleanup.policy": "compact"}
    bench.create_topic("keyed", 1, config | {"min.cleanable.dirty.ratio": "0.001"})
    for _ in range(2 * KEYS // KEYED_AT_ONCE):
        _write_keyed(bench.broker.bootstrap, KEYED_AT_ONCE)


def write_for_the_cleaner(bench: Bench, ended: threading.Event) -> int:
    """5 MB of new values each second: with each segment that is full the cleaner goes through the whole log again."""
    count = 0
    while not ended.wait(BETWEEN_KEYED_S):
        _write_keyed(bench.broker.bootstrap, KEYED_AT_ONCE)
        count += 1
    return count


_keys = itertools.count()


def _write_keyed(bootstrap: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 131072})
    for number in itertools.islice(_keys, records):
        producer.produce("keyed", bytes(KEYED_BYTES), b"key-%09d" % (number % KEYS))
    assert producer.flush(60) == 0


def records_to_read(bench: Bench) -> None:
    """500 MB by ProducerPerformance."""
    bench.create_topic("cold", PARTITIONS)
    config = {"acks": "all", "batch.size": "131072"}
    records = bench.count(COLD_RECORDS)
    bench.tools.produce(bench.broker.bootstrap, "cold", records, COLD_RECORD_BYTES, config)


def read_from_the_disk(bench: Bench, ended: threading.Event) -> int:
    """librdkafka reads the topic again and again, after it went out of the page cache."""
    count = 0
    while not ended.is_set():
        evict(bench.broker.data_directory, "cold")
        consume(bench.broker.bootstrap, "cold", records=bench.count(COLD_RECORDS))
        count += 1
    return count


DISTURBANCES: dict[str, Disturbance] = {
    "alone": Disturbance(),
    "segments roll": Disturbance(topic={"segment.bytes": str(SMALLEST_SEGMENT)}),
    "retention deletes": Disturbance(
        topic={"segment.bytes": str(SMALLEST_SEGMENT), "retention.bytes": str(SMALLEST_SEGMENT)}
    ),
    "connections open and close": Disturbance(open_and_close, many_topics),
    "topics come and go": Disturbance(create_and_delete),
    "a group rebalances": Disturbance(rebalance),
    "compaction": Disturbance(write_for_the_cleaner, keyed_records),
    "a cold reader": Disturbance(read_from_the_disk, records_to_read),
    "metadata snapshots": Disturbance(
        change_configs, properties={"metadata.log.max.record.bytes.between.snapshots": str(SNAPSHOT_AFTER_BYTES)}
    ),
}
"""In this order: the topics of `many_topics` stay, and the last one starts the broker anew."""
