"""What a broker still knows after it was stopped, and after it was killed in the middle of its work."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from .brokers import Broker
from .clients import Message, read_with_confluent, write_with_confluent
from .conftest import FreshBroker
from .topics import create_topic, wait_for_leaders
from .waiting import until

PARTITIONS = 3
ENOUGH_ACKNOWLEDGED = 20_000


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_everything_is_there_after_a_restart(fresh_broker: FreshBroker, end: str) -> None:
    broker = fresh_broker()
    create_topic(broker, "kept", PARTITIONS, {"retention.ms": "123456789"})
    create_topic(broker, "deleted")
    messages = [Message(b"%d" % number, partition=number % PARTITIONS) for number in range(300)]
    written = write_with_confluent(broker.bootstrap, "kept", messages, idempotent=True)
    commit(broker, "the-group", 42)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.delete_topics(["deleted"])
    until(lambda: "deleted" not in admin.list_topics(), "the topic is gone")
    before = admin.describe_topics(["kept"])[0]
    admin.close()
    getattr(broker, end)()
    broker.start()
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    assert "deleted" not in admin.list_topics()
    after = admin.describe_topics(["kept"])[0]
    admin.close()
    assert after["topic_id"] == before["topic_id"]
    found = read_with_confluent(broker.bootstrap, "kept", PARTITIONS, 300)
    assert [(each.message.value, each.offset) for each in found] == [
        (each.message.value, each.offset)
        for each in sorted(written, key=lambda each: (each.message.partition, each.offset))
    ]
    assert committed(broker, "the-group") == (42, "note")
    more = write_with_confluent(broker.bootstrap, "kept", messages[:PARTITIONS])
    assert [each.offset for each in more] == [100] * PARTITIONS


def commit(broker: Broker, group: str, offset: int) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group)
    partition = TopicPartition("kept", 0)
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(offset, "note", -1)})
    consumer.close()


def committed(broker: Broker, group: str) -> tuple[int, str]:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group)
    found = consumer.committed(TopicPartition("kept", 0), metadata=True)
    consumer.close()
    return found.offset, found.metadata


class SteadyProducer:
    """Sends numbered records on a thread, as fast as it may, and keeps where each was acknowledged."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.acknowledged: dict[int, tuple[int, int]] = {}
        """By number: partition and offset."""
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "queue.buffering.max.messages": 5000,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        number = 0
        while not self._stopping.is_set():
            try:
                self._producer.produce(
                    self._topic, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._delivered
                )
                number += 1
            except BufferError:
                self._producer.poll(0.1)
            self._producer.poll(0)
        assert self._producer.flush(120) == 0
        self.sent = number

    def _delivered(self, error: object, message: object) -> None:
        assert error is None, error
        self.acknowledged[int(message.value())] = (message.partition(), message.offset())  # type: ignore[attr-defined]

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join(180)
        assert not self._thread.is_alive()


def test_everything_acknowledged_survives_kill_9_at_the_same_offsets(fresh_broker: FreshBroker) -> None:
    """Killed twice while an idempotent producer sends as fast as it can; what it sends again is not stored twice."""
    broker = fresh_broker()
    create_topic(broker, "kept", PARTITIONS)
    with steady_producer(broker, "kept") as producer:
        for round_number in (1, 2):
            enough = len(producer.acknowledged) + ENOUGH_ACKNOWLEDGED
            until(lambda: len(producer.acknowledged) > enough, "acknowledgements")  # noqa: B023
            broker.kill()
            acknowledged = dict(producer.acknowledged)
            broker.start()
            wait_for_leaders(broker, "kept", PARTITIONS)
            assert_stored(broker, acknowledged, f"kill {round_number}")
    assert len(producer.acknowledged) == producer.sent
    stored = assert_stored(broker, producer.acknowledged, "the end")
    assert len(stored) == producer.sent


@contextmanager
def steady_producer(broker: Broker, topic: str) -> Iterator[SteadyProducer]:
    producer = SteadyProducer(broker, topic)
    try:
        yield producer
    finally:
        producer.finish()


def assert_stored(broker: Broker, acknowledged: dict[int, tuple[int, int]], when: str) -> dict[int, tuple[int, int]]:
    """Reads up to the ends as they are now; each acknowledged number is where it was said to be, and only there."""
    stored: dict[int, tuple[int, int]] = {}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.auto.commit": False})
    partitions = [ConfluentTopicPartition("kept", partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)]
    ends = {each.partition: consumer.get_watermark_offsets(each, timeout=30)[1] for each in partitions}
    consumer.assign(partitions)

    def read_to_the_ends() -> bool:
        for record in consumer.consume(10_000, timeout=0.5):
            assert record.error() is None, record.error()
            number = int(record.value())
            assert number not in stored, f"{number} is stored twice"
            stored[number] = (record.partition(), record.offset())
        return all(each.offset >= ends[each.partition] for each in consumer.position(partitions))

    until(read_to_the_ends, "the ends of all partitions")
    consumer.close()
    lost = [
        (number, place, stored.get(number)) for number, place in acknowledged.items() if place != stored.get(number)
    ]
    assert not lost, f"{when}: {len(lost)} of {len(acknowledged)} (number, acknowledged, stored): {lost[:5]}"
    return stored


def test_clients_go_on_through_a_restart(fresh_broker: FreshBroker) -> None:
    """A producer and a member of a group that stay connected while the broker is stopped and started."""
    broker = fresh_broker()
    create_topic(broker, "kept")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, reconnect_backoff_max_ms=500)
    consumer = KafkaConsumer(
        "kept",
        bootstrap_servers=broker.bootstrap,
        group_id="the-group",
        auto_offset_reset="earliest",
        reconnect_backoff_max_ms=500,
    )
    values: list[bytes] = []

    def read(count: int) -> None:
        def poll() -> bool:
            values.extend(record.value for records in consumer.poll(200).values() for record in records)
            return len(values) >= count

        until(poll, f"{count} records")

    producer.send("kept", b"before").get(30)
    read(1)
    broker.stop()
    broker.start()
    producer.send("kept", b"after").get(60)
    read(2)
    assert values == [b"before", b"after"]
    producer.close()
    consumer.close()
