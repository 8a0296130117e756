"""Calls of the clients that no other scenario makes: each ends alike on both brokers."""

import asyncio
import json
import subprocess
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from confluent_kafka import ConsumerGroupState, IsolationLevel, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from .answers import TestAnswers
from .brokers import Broker
from .clients import Message, poll_member, read_with_confluent, write_with_confluent
from .topics import create_topic
from .waiting import DEADLINE_S, until

RECORDS = 30


@pytest.fixture
def filled_topic(broker: Broker, topic: str) -> str:
    create_topic(broker, topic, 2)
    messages = [Message(b"%d" % number, b"k", partition=number % 2) for number in range(RECORDS)]
    write_with_confluent(broker.bootstrap, topic, messages)
    return topic


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def test_librdkafka_lists_offsets(admin: AdminClient, filled_topic: str) -> None:
    first, second = (ConfluentTopicPartition(filled_topic, partition) for partition in range(2))
    for isolation in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED):
        futures = admin.list_offsets(
            {first: OffsetSpec.earliest(), second: OffsetSpec.latest()}, isolation_level=isolation
        )
        assert [future.result(DEADLINE_S).offset for future in futures.values()] == [0, RECORDS // 2]


def test_librdkafka_describes_topics_and_the_cluster(
    admin: AdminClient, filled_topic: str, answers: TestAnswers
) -> None:
    names = TopicCollection([filled_topic])
    (future,) = admin.describe_topics(names, include_authorized_operations=True).values()
    described = future.result(DEADLINE_S)
    answers.expect("partitions", [(each.id, each.leader.id) for each in described.partitions], [(0, 1), (1, 1)])
    answers.same("operations", sorted(each.name for each in described.authorized_operations))
    cluster = admin.describe_cluster(include_authorized_operations=True).result(DEADLINE_S)
    answers.same("the cluster's operations", sorted(each.name for each in cluster.authorized_operations))
    (future,) = admin.describe_topics(TopicCollection([f"{filled_topic}-unknown"])).values()
    with pytest.raises(KafkaException) as unknown:
        future.result(DEADLINE_S)
    answers.expect("unknown", unknown.value.args[0].name(), "UNKNOWN_TOPIC_OR_PART")


def test_librdkafka_lists_groups_by_state(broker: Broker, admin: AdminClient, filled_topic: str) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=filled_topic)
    consumer.assign([TopicPartition(filled_topic, 0)])
    consumer.seek_to_beginning()
    until(lambda: consumer.poll(200), "records")
    consumer.commit()
    consumer.close()

    def groups_in(state: ConsumerGroupState) -> set[str]:
        listed = admin.list_consumer_groups(states={state}).result(DEADLINE_S)
        assert not listed.errors
        return {each.group_id for each in listed.valid}

    assert filled_topic in groups_in(ConsumerGroupState.EMPTY)
    assert filled_topic not in groups_in(ConsumerGroupState.STABLE)


def test_aiokafka_administrates(broker: Broker, topic: str, answers: TestAnswers) -> None:
    async def partitions_of(client: AIOKafkaAdminClient) -> list[Any]:
        (described,) = await client.describe_topics([topic])
        return list(described["partitions"])

    async def administrate() -> dict[str, Any]:
        client = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await client.start()
        try:
            created = await client.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "1000"})])
            grown = await client.create_partitions({topic: NewPartitions(3)})
            while topic not in await client.list_topics() or len(await partitions_of(client)) < 3:  # noqa: ASYNC110 - the condition is the broker's
                await asyncio.sleep(0.02)  # Apache Kafka answers before its metadata is there
            groups = await client.list_consumer_groups()
            deleted = await client.delete_topics([topic])
        finally:
            await client.close()
        return {
            "created": [row[1] for row in created.topic_errors],
            "grown": [row[1] for row in grown.topic_errors],
            "groups": isinstance(groups, list),
            "deleted": [row[1] for row in deleted.topic_error_codes],
        }

    answers.expect(
        "outcome",
        asyncio.run(asyncio.wait_for(administrate(), DEADLINE_S)),
        {"created": [0], "grown": [0], "groups": True, "deleted": [0]},
    )


@pytest.mark.kcat
def test_kcat_lists_consumes_as_a_group_and_asks_for_offsets(
    broker: Broker, filled_topic: str, answers: TestAnswers
) -> None:
    def kcat(*arguments: str) -> str:
        command = ["kcat", "-b", broker.bootstrap, *arguments]
        return subprocess.run(command, capture_output=True, check=True, timeout=DEADLINE_S, text=True).stdout

    metadata = json.loads(kcat("-L", "-J", "-t", filled_topic))
    answers.same("metadata", metadata["topics"][0]["partitions"])
    group = ("-G", filled_topic, "-e", "-q", "-X", "auto.offset.reset=earliest", filled_topic)
    assert sorted(map(int, kcat(*group).split())) == list(range(RECORDS))
    assert kcat(*group) == "", "the group committed what it read"
    assert kcat("-Q", "-t", f"{filled_topic}:0:-1").split() == [filled_topic, "[0]", "offset", str(RECORDS // 2)]


@pytest.mark.parametrize("version", [(2, 1), (2, 4), (2, 8), (3, 9)])
def test_clients_that_speak_as_to_an_older_broker(broker: Broker, filled_topic: str, version: tuple[int, int]) -> None:
    """kafka-python picks its requests' versions by the release that it is told."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, api_version=version)
    assert producer.send(filled_topic, b"new", partition=0).get(DEADLINE_S).offset == RECORDS // 2
    producer.close()
    consumer = KafkaConsumer(
        filled_topic,
        bootstrap_servers=broker.bootstrap,
        api_version=version,
        group_id=filled_topic,
        auto_offset_reset="earliest",
    )
    found: list[bytes] = []

    def read() -> bool:
        found.extend(poll_member(consumer))
        return len(found) > RECORDS

    until(read, "all records")
    consumer.close()
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap, api_version=version)
    assert filled_topic in admin.list_topics()
    assert admin.list_group_offsets([filled_topic])[filled_topic][TopicPartition(filled_topic, 0)].offset == 16
    admin.close()


def test_records_are_deleted_up_to_an_offset(
    broker: Broker, admin: AdminClient, filled_topic: str, answers: TestAnswers
) -> None:
    wanted = [ConfluentTopicPartition(filled_topic, 0, 10), ConfluentTopicPartition(filled_topic, 1, 99)]
    found: dict[int, Any] = {}
    for partition, future in admin.delete_records(wanted).items():
        try:
            found[partition.partition] = future.result(DEADLINE_S).low_watermark
        except KafkaException as error:
            found[partition.partition] = error.args[0].name()
    answers.expect("low watermarks", found, {0: 10, 1: "OFFSET_OUT_OF_RANGE"})
    left = read_with_confluent(broker.bootstrap, filled_topic, 2, 20)
    assert [each.offset for each in left if each.message.partition == 0] == [10, 11, 12, 13, 14]
