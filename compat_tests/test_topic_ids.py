"""A topic that is deleted and created anew under its name, while clients write to it and read from it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaError as KafkaPythonError

from .brokers import Broker
from .clients import poll_member
from .topics import create_topic
from .waiting import until

PARTITIONS = 3
Write = Callable[[bytes], bool]
"""Whether the value was acknowledged."""
Read = Callable[[], list[bytes]]


@contextmanager
def confluent_clients(broker: Broker, topic: str) -> Iterator[tuple[Write, Read]]:
    refresh = {"bootstrap.servers": broker.bootstrap, "topic.metadata.refresh.interval.ms": 500}
    producer = Producer(refresh | {"enable.idempotence": True})
    consumer = Consumer(refresh | {"group.id": f"{topic}-readers", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    outcomes: list[bool] = []

    def write(value: bytes) -> bool:
        outcomes.clear()
        # An identity: comparing a KafkaError with None by == leaves an exception set (confluent-kafka 2.16).
        producer.produce(topic, value, key=value, on_delivery=lambda error, _: outcomes.append(error is None))
        producer.flush(30)
        return outcomes == [True]

    def read() -> list[bytes]:
        return [message.value() for message in consumer.consume(1000, timeout=0.2) if message.error() is None]

    yield write, read
    consumer.close()


@contextmanager
def kafka_python_clients(broker: Broker, topic: str) -> Iterator[tuple[Write, Read]]:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True, metadata_max_age_ms=500)
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        group_id=f"{topic}-readers",
        auto_offset_reset="earliest",
        metadata_max_age_ms=500,
    )

    def write(value: bytes) -> bool:
        try:
            producer.send(topic, value, key=value).get(30)
        except KafkaPythonError:
            return False
        return True

    def read() -> list[bytes]:
        return poll_member(consumer)

    yield write, read
    producer.close()
    consumer.close()


@pytest.mark.parametrize("clients", [confluent_clients, kafka_python_clients])
def test_clients_go_on_when_their_topic_is_created_anew(
    fresh_broker: Callable[..., Broker], topic: str, clients: Callable
) -> None:
    # Their metadata requests create the topic, too. With fewer partitions, a producer would keep what it has for one
    # that is gone until its delivery timeout.
    broker = fresh_broker({"num.partitions": str(PARTITIONS)})
    create_topic(broker, topic, PARTITIONS)
    acknowledged: list[bytes] = []
    read: list[bytes] = []
    stopping = False

    def write_steadily(write: Write) -> None:
        number = 0
        while not stopping:
            value = b"%d" % number
            number += 1
            if write(value):
                acknowledged.append(value)
            time.sleep(0.005)  # the pace of the writer, so that the readers keep up

    with clients(broker, topic) as (write, poll):
        writer = threading.Thread(target=write_steadily, args=(write,), daemon=True)
        writer.start()

        def reads_what_is_written() -> bool:
            read.extend(poll())
            return len(read) > 50 and len(acknowledged) > 50

        try:
            until(reads_what_is_written, "records of the first topic")
            admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
            before = admin.describe_topics([topic])[0]["topic_id"]
            admin.delete_topics([topic])
            until(lambda: topic not in admin.list_topics() or _topic_id(admin, topic) != before, "the topic is gone")
            # The producer, which may create topics, was perhaps faster.
            if topic not in admin.list_topics():
                admin.create_topics([NewTopic(topic, PARTITIONS, 1)], raise_errors=False)
            until(lambda: _topic_id(admin, topic) not in (None, before), "the topic is there anew")
            admin.close()
            acknowledged.clear()
            read.clear()
            until(reads_what_is_written, "records of the second topic")
        finally:
            stopping = True
            writer.join(60)
            assert not writer.is_alive()
        last = acknowledged[-1]
        until(lambda: last in read or read.extend(poll()), "the last record that was acknowledged")


def _topic_id(admin: KafkaAdminClient, topic: str) -> object:
    found = admin.describe_topics([topic])[0]
    return None if found["error_code"] else found["topic_id"]
