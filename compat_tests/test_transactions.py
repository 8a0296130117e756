"""Transactions through stock clients, single requests and Apache Kafka's tools, on both brokers."""

import re
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from .answers import TestAnswers
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker
from .clients import READERS
from .conftest import FreshBroker
from .topics import create_topic
from .transacting import leave_hanging, raw_producer
from .waiting import DEADLINE_S, until

Unique = Callable[[str], str]


def producer_of(broker: Broker, transactional_id: str, **config: object) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id, **config})


def transaction(producer: Producer, topic: str, *values: bytes, partition: int = 0, commit: bool = True) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=partition)
    if commit:
        producer.commit_transaction(DEADLINE_S)
    else:
        producer.flush(DEADLINE_S)
        producer.abort_transaction(DEADLINE_S)


def committed_values(broker: Broker, topic: str, count: int, partitions: int = 1) -> list[bytes | None]:
    stored = READERS["confluent-kafka"](broker.bootstrap, topic, partitions, count, isolation_level="read_committed")
    return [each.message.value for each in stored]


def test_readers_see_what_was_committed(broker: Broker, topic: str, unique: Unique) -> None:
    create_topic(broker, topic, 2)
    producer = producer_of(broker, unique("id"))
    producer.init_transactions(DEADLINE_S)
    transaction(producer, topic, b"a", b"b")
    transaction(producer, topic, b"x", b"y", commit=False)
    transaction(producer, topic, b"c", partition=1)
    transaction(producer, topic, b"d")
    for read in READERS.values():
        stored = read(broker.bootstrap, topic, 2, 4, isolation_level="read_committed")
        found = [(each.message.partition, each.offset, each.message.value) for each in stored]
        assert found == [(0, 0, b"a"), (0, 1, b"b"), (0, 6, b"d"), (1, 0, b"c")]
        assert len(read(broker.bootstrap, topic, 2, 6)) == 6


def test_a_zombie_is_fenced(broker: Broker, topic: str, unique: Unique) -> None:
    create_topic(broker, topic)
    transactional_id = unique("id")
    zombie = producer_of(broker, transactional_id)
    zombie.init_transactions(DEADLINE_S)
    zombie.begin_transaction()
    zombie.produce(topic, b"zombie")
    zombie.flush(DEADLINE_S)
    successor = producer_of(broker, transactional_id)
    successor.init_transactions(DEADLINE_S)
    transaction(successor, topic, b"successor")
    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(DEADLINE_S)
    assert fenced.value.args[0].fatal()
    transaction(successor, topic, b"again")
    assert committed_values(broker, topic, 2) == [b"successor", b"again"]


def test_a_transaction_that_takes_too_long_is_aborted(fresh_broker: FreshBroker, topic: str) -> None:
    broker = fresh_broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"})
    create_topic(broker, topic)
    slow = producer_of(broker, "slow", **{"transaction.timeout.ms": 1000})
    slow.init_transactions(DEADLINE_S)
    slow.begin_transaction()
    slow.produce(topic, b"slow")
    slow.flush(DEADLINE_S)
    other = producer_of(broker, "other")
    other.init_transactions(DEADLINE_S)
    transaction(other, topic, b"other")
    assert committed_values(broker, topic, 1) == [b"other"], "seen once the first transaction is over"
    with pytest.raises(KafkaException):
        slow.commit_transaction(DEADLINE_S)


def test_offsets_are_committed_with_the_transaction(broker: Broker, topic: str, unique: Unique) -> None:
    create_topic(broker, topic)
    producer = producer_of(broker, unique("id"))
    producer.init_transactions(DEADLINE_S)
    transaction(producer, topic, *(b"%d" % number for number in range(10)))
    group = unique("group")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    found: list[bytes] = []

    def poll() -> bool:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append(message.value())
        return len(found) == 10

    until(poll, "ten records")
    at = TopicPartition(topic, 0)

    def commit(offset: int, *, abort: bool) -> int:
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, offset)], consumer.consumer_group_metadata(), DEADLINE_S
        )
        if abort:
            producer.abort_transaction(DEADLINE_S)
        else:
            producer.commit_transaction(DEADLINE_S)
        return int(consumer.committed([at], DEADLINE_S)[0].offset)

    assert commit(4, abort=False) == 4
    assert commit(9, abort=True) == 4
    assert commit(10, abort=False) == 10
    consumer.close()


def test_transactions_outlive_a_kill(fresh_broker: FreshBroker, topic: str) -> None:
    """Killed amid transactions, again and again: what was committed is there, whole and once, and nothing else."""
    broker = fresh_broker()
    create_topic(broker, topic, 2)
    committed: list[bytes] = []
    for life in range(4):
        producer = producer_of(broker, "survivor", **{"reconnect.backoff.max.ms": 200})
        producer.init_transactions(DEADLINE_S)
        for number in range(5):
            values = [b"%d-%d-%d" % (life, number, each) for each in range(4)]
            transaction(producer, topic, *values)
            transaction(producer, topic, *values, partition=1)
            committed += values
            transaction(producer, topic, b"aborted", commit=False)
        producer.begin_transaction()
        producer.produce(topic, b"never ended")
        producer.flush(DEADLINE_S)
        broker.kill()
        broker.start()
    closing = producer_of(broker, "survivor")
    closing.init_transactions(DEADLINE_S)
    transaction(closing, topic, b"end")
    assert committed_values(broker, topic, 2 * len(committed) + 1, 2) == [*committed, b"end", *committed]


# Single requests


def test_produce_says_by_its_version_what_it_thinks_of_a_partition_that_was_not_added(
    broker: Broker, topic: str, unique: Unique, answers: TestAnswers
) -> None:
    create_topic(broker, topic, 3)
    told = {}
    with raw_producer(broker, unique("id"), topic) as producer:
        told["init"] = producer.init().name
        told["before it is added"] = {version: producer.send(0, b"x", version=version) for version in (3, 9, 10, 11)}
        told["implicitly added"] = producer.send(0, b"x", version=12)
        told["once it is open"] = producer.send(1, b"x", version=11)
        told["the same again"] = producer.send(1, b"x", version=11)
        told["out of order"] = producer.send(7, b"x", version=12)
        told["another partition out of order"] = producer.send(7, b"x", version=12, partition=1)
        told["an unknown producer"] = _with_other_id(producer.send, producer, 12)
        told["an unknown producer, older"] = _with_other_id(producer.send, producer, 10)
        told["end"] = producer.end(commit=True, version=5)
        told["a late batch"] = producer.send(2, b"x", version=12, epoch=producer.epoch - 1)
        told["a late batch, older"] = producer.send(2, b"x", version=10, epoch=producer.epoch - 1)
        told["the first sequence of an epoch"] = producer.send(3, b"x", version=12)
        told["a new epoch"] = producer.send(0, b"x", version=12)
        told["a partition that is not there"] = producer.add(0, 9)
        told["abort"] = producer.end(commit=False, version=5)
        told["nothing to commit"] = producer.end(commit=True, version=5)
    answers.all_same(told)


def _with_other_id(send: Callable[..., str], producer: object, version: int) -> str:
    producer.producer_id += 1  # type: ignore[attr-defined]
    try:
        return send(0, b"x", version=version, partition=2)
    finally:
        producer.producer_id -= 1  # type: ignore[attr-defined]


def test_the_first_protocol_keeps_the_epoch(broker: Broker, topic: str, unique: Unique, answers: TestAnswers) -> None:
    create_topic(broker, topic, 2)
    told: dict[str, object] = {}
    with raw_producer(broker, unique("id"), topic) as producer:
        producer.init()
        told["added"] = producer.add(0, 1)
        told["first"] = producer.send(0, b"a", version=10)
        told["committed"] = producer.end(commit=True, version=4)
        told["committed again"] = producer.end(commit=True, version=4)
        told["once more"] = producer.end(commit=True, version=4)
        told["late"] = producer.send(1, b"late", version=10)
        told["late, of the first sequence"] = producer.send(0, b"a", version=10)
        told["added again"] = producer.add(0)
        told["second"] = producer.send(1, b"b", version=10)
        told["aborted"] = producer.end(commit=False, version=4)
        told["aborted, committed"] = producer.end(commit=True, version=4)
    answers.all_same(told)
    assert committed_values(broker, topic, 1, 2) == [b"a"]


# Apache Kafka's tools


@pytest.mark.java
def test_the_performance_tool_writes_transactions(broker: Broker, topic: str, unique: Unique) -> None:
    create_topic(broker, topic, 2)
    output = run_tool(
        Tool.PRODUCER_PERFORMANCE,
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--num-records", "2000", "--record-size", "100"),
        *("--throughput", "-1", "--transactional-id", unique("id"), "--transaction-duration-ms", "20"),
    )
    assert "2000 records sent" in output.stdout
    assert len(committed_values(broker, topic, 2000, 2)) == 2000


def transactions(broker: Broker, *arguments: str) -> list[list[str]]:
    output = run_tool(Tool.TRANSACTIONS, "--bootstrap-server", broker.bootstrap, *arguments)
    return [line.split() for line in output.lines if line.strip()]


@pytest.mark.java
def test_the_tool_lists_and_describes(broker: Broker, topic: str, unique: Unique) -> None:
    create_topic(broker, topic)
    transactional_id = unique("id")
    with raw_producer(broker, transactional_id, topic) as producer:
        producer.init()
        assert producer.send(0, b"a", version=12) == "NONE"
        listed = transactions(broker, "list", "--transactional-id-pattern", re.escape(transactional_id))
        assert listed[1:] == [[transactional_id, "1", str(producer.producer_id), "Ongoing"]]
        titles, row = transactions(broker, "describe", "--transactional-id", transactional_id)
        described = dict(zip(titles, row, strict=True))
        assert described["TransactionState"] == "Ongoing"
        assert described["TopicPartitions"] == f"{topic}-0"
        titles, row = transactions(broker, "describe-producers", "--topic", topic, "--partition", "0")
        described = dict(zip(titles, row, strict=True))
        assert described["ProducerId"] == str(producer.producer_id)
        assert described["CurrentTransactionStartOffset"] == "0"
        producer.end(commit=True, version=5)


@pytest.mark.java
def test_the_tool_finds_and_aborts_what_hangs(broker: Broker, topic: str, unique: Unique) -> None:
    create_topic(broker, topic)
    hanging = leave_hanging(broker, unique("id"), topic)
    writer = producer_of(broker, unique("writer"))
    writer.init_transactions(DEADLINE_S)
    transaction(writer, topic, b"behind it")
    find = ("find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
    titles, row = transactions(broker, *find)
    found = dict(zip(titles, row, strict=True))
    assert (found["Topic"], found["ProducerId"], found["StartOffset"]) == (topic, str(hanging.producer_id), "0")
    transactions(broker, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert transactions(broker, *find)[1:] == []
    assert committed_values(broker, topic, 1) == [b"behind it"]
