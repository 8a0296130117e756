"""What a broker still knows after it was stopped, and after it was killed in the middle of its work."""

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from .brokers import Broker
from .clients import Message, poll_member, read_with_confluent, write_with_confluent
from .conftest import FreshBroker
from .steady_producers import ConfluentProducer, assert_stored, finished
from .topics import create_topic, wait_for_leaders
from .waiting import DEADLINE_S, until

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


def test_everything_acknowledged_survives_kill_9_at_the_same_offsets(fresh_broker: FreshBroker) -> None:
    """Killed twice while an idempotent producer sends as fast as it can; what it sends again is not stored twice."""
    broker = fresh_broker()
    create_topic(broker, "kept", PARTITIONS)
    producer = ConfluentProducer(broker, "kept", PARTITIONS)
    with finished(producer):
        for round_number in (1, 2):
            enough = len(producer.acknowledged) + ENOUGH_ACKNOWLEDGED
            until(lambda: len(producer.acknowledged) > enough, "acknowledgements")  # noqa: B023
            broker.kill()
            acknowledged = dict(producer.acknowledged)
            broker.start()
            wait_for_leaders(broker, "kept", PARTITIONS)
            assert_stored(broker, "kept", PARTITIONS, acknowledged, f"kill {round_number}")
    stored = assert_stored(broker, "kept", PARTITIONS, producer.acknowledged, "the end")
    assert len(stored) == producer.sent


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
            values.extend(poll_member(consumer))
            return len(values) >= count

        until(poll, f"{count} records")

    producer.send("kept", b"before").get(DEADLINE_S)
    read(1)
    broker.stop()
    broker.start()
    producer.send("kept", b"after").get(DEADLINE_S)
    read(2)
    assert values == [b"before", b"after"]
    producer.close()
    consumer.close()
