"""Transactions that Apache Kafka wrote, read by the stock clients from the same directory through pykbroker.

What is compared is what the clients saw of Apache Kafka itself, under both isolation levels; and the transaction
indexes, byte by byte, after a recovery that built them anew.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from .apache_kafka.broker import ApacheKafka
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker, BrokerProcess, Pykbroker
from .clients import READERS
from .conftest import assert_all_went_well, watch_log
from .topics import create_topic, wait_for_leaders
from .waiting import DEADLINE_S

pytestmark = pytest.mark.java

TOPIC = "of-transactions"
TRANSACTIONS = 90
PRODUCERS = 3
PADDING = b"-" * 9000
LEVELS = ("read_committed", "read_uncommitted")

View = Mapping[str, object]


def producer_of(broker: Broker, number: int) -> Producer:
    """Its transactions stay open for as long as Kafka allows: the last one is to outlive the test."""
    settings = {"transactional.id": f"producer-{number}", "transaction.timeout.ms": 900_000, "linger.ms": 0}
    producer = Producer({"bootstrap.servers": broker.bootstrap, **settings})
    producer.init_transactions(DEADLINE_S)
    return producer


def write(broker: Broker) -> tuple[list[bytes], list[bytes]]:
    """Transactions of several producers that overlap, over several segments; the last one stays open. Returns the
    values that were committed, and all, in their order.
    """
    producers = [producer_of(broker, number) for number in range(PRODUCERS + 1)]
    committed, everything = [], []
    for number in range(TRANSACTIONS):
        producer = producers[number % PRODUCERS]
        if number >= PRODUCERS:
            (producer.commit_transaction if number % 4 else producer.abort_transaction)(DEADLINE_S)
        producer.begin_transaction()
        for each in range(5):
            # Whether it is to be committed is decided by the next transaction of this producer.
            is_committed = (number + PRODUCERS) % 4 > 0 or number + PRODUCERS >= TRANSACTIONS
            value = b"%d.%d %s " % (number, each, b"committed" if is_committed else b"aborted") + PADDING
            producer.produce(TOPIC, value, b"key %d" % each, partition=0)
            assert producer.flush(DEADLINE_S) == 0
            everything.append(value)
            if is_committed:
                committed.append(value)
    for producer in producers[:PRODUCERS]:
        producer.commit_transaction(DEADLINE_S)
    producers[PRODUCERS].begin_transaction()
    producers[PRODUCERS].produce(TOPIC, b"open", partition=0)
    assert producers[PRODUCERS].flush(DEADLINE_S) == 0
    return committed, [*everything, b"open"]


def view(broker: Broker, counts: Mapping[str, int], *, with_java: bool = False) -> View:
    """What every client sees, offsets included, and where it sees the end."""
    seen: dict[str, object] = {}
    for level in LEVELS:
        for name, read in READERS.items():
            found = read(broker.bootstrap, TOPIC, 1, counts[level], isolation_level=level)
            seen[f"{name} {level}"] = [(each.offset, each.message.value) for each in found]
        if with_java:
            seen[f"java {level}"] = read_with_java(broker, counts[level], level)
        seen[f"end {level}"] = end_offset(broker, level)
    return seen


def read_with_java(broker: Broker, count: int, level: str) -> list[bytes]:
    arguments = ("--from-beginning", "--max-messages", str(count), "--timeout-ms", "120000", "--isolation-level", level)
    output = run_tool(Tool.CONSOLE_CONSUMER, "--bootstrap-server", broker.bootstrap, "--topic", TOPIC, *arguments)
    return output.stdout_bytes.splitlines()


def end_offset(broker: Broker, level: str) -> int:
    """ListOffsets under an isolation level."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "unused", "isolation.level": level}
    consumer = Consumer(settings)
    _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0, OFFSET_END), timeout=DEADLINE_S)
    consumer.close()
    return int(end)


def transaction_indexes(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((data / f"{TOPIC}-0").glob("*.txnindex"))}


def test_every_client_sees_what_it_saw_of_apache_kafka(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    data = tmp_path / "data"

    def started(broker: BrokerProcess) -> BrokerProcess:
        watch_log(request.node, broker)
        broker.start()
        return broker

    kafka = started(ApacheKafka(tmp_path / "kafka", {"log.dirs": str(data)}))
    try:
        create_topic(kafka, TOPIC, 1, {"segment.bytes": str(1024 * 1024), "index.interval.bytes": "500"})
        committed, everything = write(kafka)
        counts = {"read_committed": len(committed), "read_uncommitted": len(everything)}
        expected = view(kafka, counts, with_java=True)
    finally:
        kafka.stop()
    assert [value for _, value in expected["confluent-kafka read_committed"]] == committed  # type: ignore[attr-defined]
    indexes = transaction_indexes(data)
    assert len(indexes) > 2
    without_java = {name: seen for name, seen in expected.items() if not name.startswith("java")}

    ours = started(Pykbroker(tmp_path / "pykbroker", {"node.id": "1", "log.dirs": str(data)}))
    try:
        assert view(ours, counts, with_java=True) == expected
    finally:
        ours.kill()
    assert transaction_indexes(data) == indexes
    (data / "recovery-point-offset-checkpoint").unlink()
    ours.start()
    try:
        assert view(ours, counts) == without_java
        assert transaction_indexes(data) == indexes, "as it was built anew"
    finally:
        ours.stop()
    assert_all_went_well(ours)

    kafka.start()
    try:
        wait_for_leaders(kafka, TOPIC, 1)
        assert view(kafka, counts) == without_java
    finally:
        kafka.stop()
