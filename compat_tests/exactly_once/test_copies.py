"""A topic copied in transactions while broker and application are killed: the copy is the original.

As a multiset, and in order in each partition. 100,000 records and more than 20 kills for pykbroker; Apache Kafka, which
takes ten times as long to come back, is killed less often on its way through a part of them.
"""

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from compat_tests.apache_kafka.tools import Tool, tool_command
from compat_tests.brokers import Broker
from compat_tests.clients import produce
from compat_tests.conftest import FreshBroker
from compat_tests.topics import create_topic
from compat_tests.waiting import DEADLINE_S, until

from .supervised import Supervised

pytestmark = pytest.mark.flaky(reruns=0)

SOURCE, TARGET, NAME = "original", "copy", "copier"
RECORDS = {"pykbroker": 100_000, "apache-kafka": 10_000}
KILLS = {"pykbroker": 24, "apache-kafka": 2}


@dataclass(frozen=True, slots=True)
class Application:
    """kill_every: the how-manieth kill is the application's; the others are the broker's."""

    command: Callable[[Broker, int], list[str]]
    partitions: int
    kill_every: int


def of_confluent(broker: Broker, records: int) -> list[str]:
    del records
    return [sys.executable, "-m", "compat_tests.exactly_once.copier", broker.bootstrap, SOURCE, TARGET, NAME]


def of_java(broker: Broker, records: int) -> list[str]:
    """Started again, the tool asks for its committed offset first, and waits until the transaction that it was killed
    in has timed out.
    """
    return tool_command(
        Tool.TRANSACTIONAL_MESSAGE_COPIER,
        *("--broker-list", broker.bootstrap, "--input-topic", SOURCE, "--output-topic", TARGET),
        *("--input-partition", "0", "--consumer-group", NAME),
        *("--transactional-id", NAME, "--transaction-size", "200", "--max-messages", str(records)),
        *("--transaction-timeout", "20000", "--enable-random-aborts"),
    )


# The one has a share of a group's partitions, the other a partition of its own.
CONFLUENT = Application(of_confluent, partitions=4, kill_every=2)
JAVA = Application(of_java, partitions=1, kill_every=4)


@pytest.mark.parametrize(
    "application", [pytest.param(CONFLUENT, id="confluent"), pytest.param(JAVA, id="java", marks=pytest.mark.java)]
)
def test_the_copy_is_the_original(fresh_broker: FreshBroker, tmp_path: Path, application: Application) -> None:
    broker = fresh_broker()
    records, kills = RECORDS[broker.kind], KILLS[broker.kind]
    create_topic(broker, SOURCE, application.partitions)
    create_topic(broker, TARGET, application.partitions)
    written = write(broker, records, application.partitions)
    rng = random.Random(records)
    with Supervised(application.command(broker, records), tmp_path / "copier.log") as copier:
        for number in range(kills):
            due = records * number // kills
            await_copied(broker, due, application, copier)
            if number % application.kill_every == 1:
                copier.kill()
            else:
                broker.kill()
                if rng.random() < 0.3:
                    copier.kill()
                broker.start()
        await_copied(broker, records, application, copier)
    assert read(broker, TARGET, records, application.partitions) == written


def write(broker: Broker, count: int, partitions: int) -> list[list[bytes]]:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "enable.idempotence": True})
    written: list[list[bytes]] = [[] for _ in range(partitions)]
    for number in range(count):
        partition = number % partitions
        value = b"%d of %d" % (number, partition)
        written[partition].append(value)
        produce(producer, SOURCE, value, b"key-%d" % (number % 1000), partition=partition)
    assert producer.flush(DEADLINE_S) == 0
    return written


def await_copied(broker: Broker, count: int, application: Application, copier: Supervised) -> None:
    try:
        until(lambda: copied(broker, application.partitions) >= count, f"{count} records copied", DEADLINE_S)
    except AssertionError as late:
        raise AssertionError(f"{late}; the copier was started {copier.starts} times:\n{copier.log_text()}") from None


def copied(broker: Broker, partitions: int) -> int:
    """What the group has committed of the original; -1 while no coordinator can say."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": NAME})
    try:
        committed = consumer.committed([TopicPartition(SOURCE, index) for index in range(partitions)], timeout=10)
    except KafkaException:
        return -1
    finally:
        consumer.close()
    return sum(max(each.offset, 0) for each in committed)


def read(broker: Broker, topic: str, count: int, partitions: int) -> list[list[bytes]]:
    """All that a reader of committed records finds, in order, to the end of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found: list[list[bytes]] = [[] for _ in range(partitions)]
    ended: set[int] = set()

    def all_read() -> bool:
        for message in consumer.consume(2_000, timeout=1):
            partition = message.partition()
            if message.error() is None:
                found[partition].append(message.value())
            else:
                ended.add(partition)
        return len(ended) == partitions and sum(map(len, found)) >= count

    until(all_read, f"{count} records in {topic}")
    consumer.close()
    return found
