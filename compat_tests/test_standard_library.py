"""The main job on real input: one client loads the standard library, others read every line of it back.

Here confluent-kafka loads it; in `spark_compat` kafka-python does, which takes ten times as long.
"""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewTopic

from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.brokers import Broker
from compat_tests.standard_library import (
    PARTITIONS,
    Collected,
    expected,
    expected_record_count,
    load_by_confluent_kafka,
    records,
)

pytestmark = pytest.mark.timeout(600)

READ_DEADLINE_S = 240
# Neither stands in any line of the library: a test says so.
KEY_SEPARATOR = "\x1f:\x1f"
RECORD_SEPARATOR = "\x1e|\x1e\n"


@pytest.fixture(scope="module")
def loaded_topic(shared_broker: Broker) -> Iterator[str]:
    name = "standard-library"
    admin = KafkaAdminClient(bootstrap_servers=shared_broker.bootstrap)
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])
    load_by_confluent_kafka(shared_broker.bootstrap, name)
    yield name
    admin.delete_topics([name])
    admin.close()


def test_separators_of_the_console_consumer_stand_in_no_line() -> None:
    forbidden = (KEY_SEPARATOR.encode(), RECORD_SEPARATOR.encode())
    assert not [key for key, value in records() if any(separator in key + value for separator in forbidden)]


def test_confluent_kafka_reads_every_line_back(broker: Broker, loaded_topic: str, unique) -> None:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": unique("group"), "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([loaded_topic])
    collected = Collected()
    deadline = time.monotonic() + READ_DEADLINE_S
    while collected.record_count < expected_record_count() and time.monotonic() < deadline:
        for message in consumer.consume(10_000, timeout=1.0):
            assert message.error() is None, message.error()
            collected.add(message.key(), message.value())
    assert not consumer.consume(1, timeout=0.5)
    consumer.close()
    assert collected.digests() == expected()


@pytest.mark.java
def test_java_console_consumer_reads_every_line_back(broker: Broker, loaded_topic: str) -> None:
    output = run_tool(
        Tool.CONSOLE_CONSUMER,
        *("--bootstrap-server", broker.bootstrap, "--topic", loaded_topic, "--from-beginning"),
        *("--max-messages", str(expected_record_count()), "--timeout-ms", "120000"),
        *("--formatter-property", "print.key=true", "--formatter-property", f"key.separator={KEY_SEPARATOR}"),
        *("--formatter-property", f"line.separator={RECORD_SEPARATOR}"),
        timeout_s=READ_DEADLINE_S,
    )
    collected = Collected()
    for printed in output.stdout_bytes.split(RECORD_SEPARATOR.encode())[:-1]:
        key, value = printed.split(KEY_SEPARATOR.encode(), 1)
        collected.add(key, value)
    assert collected.digests() == expected()


def test_end_offsets_add_up_to_the_number_of_lines(broker: Broker, loaded_topic: str) -> None:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    partitions = [TopicPartition(loaded_topic, partition) for partition in range(PARTITIONS)]
    offsets = consumer.end_offsets(partitions)
    consumer.close()
    assert sum(offsets.values()) == expected_record_count()
