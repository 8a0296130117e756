"""One data directory that pykbroker and Apache Kafka take over from each other."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from .apache_kafka.broker import ApacheKafka
from .brokers import Broker, BrokerProcess, Pykbroker
from .clients import READERS, Message, Stored, write_with_confluent
from .conftest import watch_log
from .topics import create_topic, wait_for_leaders

pytestmark = pytest.mark.java

PARTITIONS = 2
ROUND = 100
NOW = int(time.time() * 1000)


def pykbroker(directory: Path, data: Path, number: int) -> BrokerProcess:
    return Pykbroker(directory / f"pykbroker-{number}", {"node.id": "1", "log.dirs": str(data)})


def apache_kafka(directory: Path, data: Path, number: int) -> BrokerProcess:
    return ApacheKafka(directory / f"kafka-{number}", {"log.dirs": str(data)}, is_formatted=number > 0)


@pytest.mark.parametrize(
    ("order", "end"),
    [((pykbroker, apache_kafka, pykbroker), "kill"), ((apache_kafka, pykbroker, apache_kafka), "stop")],
    ids=["ours-kafka-ours-killed", "kafka-ours-kafka-stopped"],
)
def test_a_directory_changes_hands(
    tmp_path: Path, order: tuple[Callable[..., BrokerProcess], ...], end: str, request: pytest.FixtureRequest
) -> None:
    """Topics and their ids, every record at its offset, committed offsets: each finds what the others left."""
    written: list[Stored] = []
    topic_ids = set()
    for number, make in enumerate(order):
        broker = make(tmp_path, tmp_path / "data", number)
        watch_log(request.node, broker)
        broker.start()
        try:
            if number == 0:
                create_topic(broker, "kept", PARTITIONS, {"retention.ms": "123456789000"})
            wait_for_leaders(broker, "kept", PARTITIONS)
            written += write_round(broker, number)
            assert_all_read(broker, written)
            create_topic(broker, f"of-round-{number}")
            topic_ids.add(topic_id(broker, number))
            assert committed(broker) == (None if number == 0 else number - 1)
            commit(broker, number)
        finally:
            getattr(broker, end)()
    assert len(topic_ids) == 1


def write_round(broker: Broker, number: int) -> list[Stored]:
    messages = [Message(b"%d.%d" % (number, each), b"key", (), NOW, each % PARTITIONS) for each in range(ROUND)]
    return write_with_confluent(broker.bootstrap, "kept", messages, idempotent=True)


def assert_all_read(broker: Broker, written: list[Stored]) -> None:
    expected = sorted((each.message.partition, each.offset, each.message.value) for each in written)
    assert [offset for partition, offset, _ in expected if partition == 0] == list(range(len(written) // PARTITIONS))
    for name, read in READERS.items():
        found = read(broker.bootstrap, "kept", PARTITIONS, len(written))
        assert [(each.message.partition, each.offset, each.message.value) for each in found] == expected, name


def topic_id(broker: Broker, number: int) -> str:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    assert {f"of-round-{each}" for each in range(number + 1)} <= set(admin.list_topics())
    found = str(admin.describe_topics(["kept"])[0]["topic_id"])
    admin.close()
    return found


def committed(broker: Broker) -> int | None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="the-group")
    found: int | None = consumer.committed(TopicPartition("kept", 0))
    consumer.close()
    return found


def commit(broker: Broker, offset: int) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="the-group")
    partition = TopicPartition("kept", 0)
    consumer.assign([partition])
    consumer.seek(partition, offset)
    consumer.commit()
    consumer.close()
