"""Stock clients on Apache Kafka 2.1, 2.8 and 3.9, and on pykbroker that is started as one of them.

What the release serves works, in its versions: others close the connection. What it does not serve fails alike.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from kafka import KafkaConsumer

from compat_tests.answers import TestAnswers
from compat_tests.brokers import BrokerProcess
from compat_tests.clients import READERS, WRITERS, Message
from compat_tests.waiting import DEADLINE_S, until

MESSAGES = [
    Message(b"value %d" % number, b"key %d" % number, (("h", b"1"),), 1_700_000_000_000 + number)
    for number in range(20)
]


GREATEST = "the record of the greatest timestamp"
BEFORE_KIP_734 = ("2.1", "2.8")
"""They take -3 for a time, and find the first record; a known difference (docs/personalities.md)."""


@pytest.fixture
def new_topic(of_release: BrokerProcess, topic: str) -> str:
    """Created by a client, in the versions of the release; old records stay there."""
    admin = AdminClient({"bootstrap.servers": of_release.bootstrap})
    for future in admin.create_topics([NewTopic(topic, 1, 1, config={"retention.ms": "-1"})]).values():
        future.result(DEADLINE_S)
    return topic


@pytest.mark.parametrize("writer", WRITERS)
def test_what_one_client_writes_all_clients_read(of_release: BrokerProcess, new_topic: str, writer: str) -> None:
    written = WRITERS[writer](of_release.bootstrap, new_topic, MESSAGES)
    for name, read in READERS.items():
        assert read(of_release.bootstrap, new_topic, 1, len(MESSAGES)) == written, f"read by {name}"


def test_a_group_goes_on_where_it_committed(
    of_release: BrokerProcess, new_topic: str, unique: Callable[[str], str]
) -> None:
    WRITERS["confluent-kafka"](of_release.bootstrap, new_topic, MESSAGES)
    group = unique("group")
    first = KafkaConsumer(
        new_topic,
        bootstrap_servers=of_release.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=5,
    )
    found: list[bytes] = []
    until(lambda: found.extend(each.value for rows in first.poll(500).values() for each in rows) or found, "records")
    first.commit()
    first.close()
    second = Consumer({"bootstrap.servers": of_release.bootstrap, "group.id": group, "auto.offset.reset": "error"})
    second.subscribe([new_topic])
    while len(found) < len(MESSAGES):
        message = second.poll(DEADLINE_S)
        assert message is not None
        assert message.error() is None, message.error()
        found.append(message.value())
    second.close()
    assert found == [each.value for each in MESSAGES]


def test_transactions_commit_and_abort(of_release: BrokerProcess, new_topic: str, unique: Callable[[str], str]) -> None:
    producer = Producer({"bootstrap.servers": of_release.bootstrap, "transactional.id": unique("transactional-id")})
    producer.init_transactions(DEADLINE_S)
    for value, ends in ((b"kept", producer.commit_transaction), (b"gone", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(new_topic, value)
        producer.flush(DEADLINE_S)
        ends(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(new_topic, b"last")
    producer.commit_transaction(DEADLINE_S)
    found = READERS["confluent-kafka"](of_release.bootstrap, new_topic, 1, 2, isolation_level="read_committed")
    assert [each.message.value for each in found] == [b"kept", b"last"]


def test_the_consumer_protocol_fails_alike(
    of_release: BrokerProcess, new_topic: str, unique: Callable[[str], str], answers: TestAnswers
) -> None:
    """librdkafka never gets further, since there is no version of ConsumerGroupHeartbeat for it (KIP-848)."""
    logger = logging.getLogger(unique("logger"))
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger.addHandler(Keep())
    settings = {
        "bootstrap.servers": of_release.bootstrap,
        "group.id": unique("group"),
        "group.protocol": "consumer",
        "debug": "cgrp",
    }
    consumer = Consumer(settings, logger=logger)
    consumer.subscribe([new_topic])

    def reason() -> str | None:
        message = consumer.poll(0.1)
        assert message is None, message.error() or message.value()
        found = [re.search(r"marking the coordinator \(1\) dead: (.*)", line) for line in lines]
        return next((each[1] for each in found if each is not None), None)

    until(reason, "the coordinator refuses the protocol")
    answers.same("reason", reason())
    answers.same("assignment", len(consumer.assignment()))
    consumer.close()


def test_what_needs_a_later_release_fails_alike(
    release: str, of_release: BrokerProcess, new_topic: str, answers: TestAnswers
) -> None:
    WRITERS["confluent-kafka"](of_release.bootstrap, new_topic, MESSAGES)
    admin = AdminClient({"bootstrap.servers": of_release.bootstrap})
    partition = TopicPartition(new_topic, 0)
    entry = ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
    requests: dict[str, Callable[[], dict[Any, Any]]] = {
        GREATEST: lambda: admin.list_offsets({partition: OffsetSpec.max_timestamp()}),
        "the latest offset": lambda: admin.list_offsets({partition: OffsetSpec.latest()}),
        "users of SCRAM": lambda: {None: admin.describe_user_scram_credentials()},
        "incremental changes": lambda: admin.incremental_alter_configs(
            [ConfigResource(ResourceType.TOPIC, new_topic, incremental_configs=[entry])]
        ),
        "the cluster": lambda: {None: admin.describe_cluster()},
    }
    for question, ask in requests.items():
        if question == GREATEST and release in BEFORE_KIP_734:
            expected = "served" if of_release.kind == "apache-kafka" else "UNSUPPORTED_VERSION"
            answers.expect(question, outcome(ask), expected)
        else:
            answers.same(question, outcome(ask))


def outcome(ask: Callable[[], dict[Any, Any]]) -> str:
    try:
        for future in ask().values():
            future.result(DEADLINE_S)
    except KafkaException as error:
        return str(error.args[0].name())
    return "served"
