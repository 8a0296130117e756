"""How the tests here mirror topics, and what they look for in a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.committing import commit_offsets
from compat_tests.waiting import until
from pykbroker.spark import Listener, MirrorOptions, MirrorSummary, Source, mirror
from spark_compat.pipelines import records_of
from spark_compat.streams import read_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker

PREFIX = "copy."


def mirror_topics(
    spark: SparkSession,
    source: Broker,
    target: Broker,
    *topics: str,
    listener: Listener | None = None,
    **options: Any,
) -> MirrorSummary:
    """options: fields of MirrorOptions. The groups of other tests on the same brokers are left alone."""
    given = MirrorOptions(
        Source(source.bootstrap),
        Source(target.bootstrap),
        topics=topics,
        **{"prefix": PREFIX, "groups_matching": None} | options,
    )
    return mirror(given, spark=spark, listener=listener)


def copied_fields(spark: SparkSession, broker: Broker, topic: str) -> dict[int, list[tuple[Any, ...]]]:
    """Timestamp, key, value and headers of the committed records, by partition, in their order."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    committed = read_batch(spark, broker.bootstrap, topic, **{"kafka.isolation.level": "read_committed"})
    for _, partition, _, timestamp, _, key, value, headers in records_of(committed):
        found.setdefault(partition, []).append((timestamp, key, value, headers))
    return found


def assert_copied(spark: SparkSession, source: Broker, target: Broker, topic: str, prefix: str = PREFIX) -> None:
    """Record by record, each once, in the order of its partition."""
    assert copied_fields(spark, target, prefix + topic) == copied_fields(spark, source, topic)


def commit(broker: Broker, group: str, topic: str, offsets: Sequence[int]) -> None:
    """offsets: by partition."""
    places = [TopicPartition(topic, partition, offset) for partition, offset in enumerate(offsets)]
    commit_offsets(broker.bootstrap, group, places)


def committed(broker: Broker, group: str, topic: str, partitions: int) -> list[int]:
    """By partition; -1001 for none."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    places = consumer.committed([TopicPartition(topic, each) for each in range(partitions)], timeout=30)
    consumer.close()
    return [place.offset for place in places]


def next_values(broker: Broker, group: str, topic: str, partitions: int) -> list[bytes | None]:
    """The values that a member of the group would read next, by partition; None behind the last record."""
    found: list[bytes | None] = []
    for partition, offset in enumerate(committed(broker, group, topic, partitions)):
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": f"{group}-reader",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )
        consumer.assign([TopicPartition(topic, partition, offset)])
        found.append(_next_value(consumer))
        consumer.close()
    return found


def _next_value(consumer: Consumer) -> bytes | None:
    found: list[Message] = []
    until(lambda: found.extend(consumer.consume(1, 1)) or found, "a record, or the partition's end")
    error = found[0].error()
    assert error is None or error.code() == KafkaError._PARTITION_EOF, error
    return found[0].value() if error is None else None


def admin_of(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def delete_topic(broker: Broker, topic: str) -> None:
    admin = admin_of(broker)
    admin.delete_topics([topic])[topic].result()
    until(lambda: topic not in admin.list_topics().topics, "the topic is gone")


def produce(broker: Broker, topic: str, *values: bytes, partition: int = 0, transactional_id: str = "") -> None:
    """With a transactional id they are one transaction, which is committed."""
    options = {"transactional.id": transactional_id} if transactional_id else {}
    producer = Producer({"bootstrap.servers": broker.bootstrap, **options})
    if transactional_id:
        producer.init_transactions()
        producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=partition)
    if transactional_id:
        producer.commit_transaction()
    assert producer.flush(30) == 0


def delete_records(broker: Broker, topic: str, offset: int) -> None:
    place = TopicPartition(topic, 0, offset)
    admin = admin_of(broker)
    admin.delete_records([place])[place].result()
