"""Dead letter queues of share groups (KIP-1191), with librdkafka's share consumer: which records get a letter, what it
says, where it goes, and what becomes of records whose letters cannot be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Message, ShareConsumer

from compat_tests.answers import TestAnswers
from compat_tests.brokers import BrokerProcess
from compat_tests.topics import wait_for_leaders
from compat_tests.waiting import until
from pykbroker.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.records.compression import Compression

from .asking import SAFE_DOWNGRADE, UPGRADE, call, finalized
from .conftest import FreshNode

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE = 0, 1
ENABLED = "errors.deadletterqueue.group.enable"
NAME, COPIES = "errors.deadletterqueue.topic.name", "errors.deadletterqueue.copy.record.enable"
CREATES, PREFIX = "errors.deadletterqueue.auto.create.topics.enable", "errors.deadletterqueue.topic.name.prefix"
LETTERS_KEYS = {TOPIC: [ENABLED], GROUP: [COPIES, NAME], BROKER: [CREATES, PREFIX]}
ALONE = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}
"""A node that is alone in its cluster."""
VALUES = [b"0", b"1", b"2", b"3"]


class Scene:
    """Topics and groups of one node."""

    def __init__(self, node: BrokerProcess) -> None:
        self.node = node

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        given = [CreatableTopicConfig(name=ENABLED, value=value) for value in configs.values()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=given)
        (made,) = call(self.node.address, CreateTopicsRequest(topics=[topic]), 7).topics
        assert not made.error_code, made
        wait_for_leaders(self.node, name, partitions)

    def alter(self, type_: int, name: str, **configs: str | None) -> list[tuple[int, str | None]]:
        """Change keys, of which only the last words are named."""
        known = {
            key.rpartition("deadletterqueue.")[2].replace(".", "_"): key
            for keys in LETTERS_KEYS.values()
            for key in keys
        }
        changes = [
            IncrementalAlterConfigsRequestAlterableConfig(
                name=known.get(key, key.replace("_", ".")),
                config_operation=DELETE if value is None else SET,
                value=value,
            )
            for key, value in configs.items()
        ]
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=type_, resource_name=name, configs=changes
        )
        answer = call(self.node.address, IncrementalAlterConfigsRequest(resources=[resource]), 1)
        return [(each.error_code, each.error_message) for each in answer.responses]

    def group(self, name: str, **configs: str) -> None:
        answers = self.alter(GROUP, name, share_auto_offset_reset="earliest", **configs)
        assert answers == [(0, None)], answers

    def described(self, type_: int, name: str) -> list[tuple[Any, ...]]:
        resource = DescribeConfigsResource(
            resource_type=type_, resource_name=name, configuration_keys=LETTERS_KEYS[type_]
        )
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
        (found,) = call(self.node.address, request, 4).results
        return sorted(
            (
                each.name,
                each.value,
                each.config_source,
                each.config_type,
                each.read_only,
                each.is_sensitive,
                [(synonym.name, synonym.value, synonym.source) for synonym in each.synonyms],
            )
            for each in found.configs
        )

    def produce(
        self, topic: str, values: list[bytes], partition: int = 0, codec: Compression = Compression.NONE
    ) -> None:
        records = encode_batch(
            [Record(b"k" + value, value, (("h", b"x"),), 1000 + number) for number, value in enumerate(values)],
            compression=codec,
        )
        data = PartitionProduceData(index=partition, records=records)
        request = ProduceRequest(
            acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
        )

        def is_there() -> bool:
            (row,) = call(self.node.address, request, 12).responses[0].partition_responses
            return not row.error_code

        until(is_there, "the records are there")

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions the topic has; None where there is none."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        (row,) = call(self.node.address, request, 12).topics
        return None if row.error_code else len(row.partitions)

    def records(self, topic: str, partition: int) -> list[Record]:
        wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 22)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=1 << 22, topics=[FetchTopic(topic=topic, partitions=[wanted])]
        )
        (row,) = call(self.node.address, request, 12).responses[0].partitions
        data = b"" if row.error_code or row.records is None else bytes(row.records)
        return [record for batch in iter_batches(data, allow_partial=True) for record in iter_records(batch)]

    def letters(self, topic: str, expected: int) -> dict[int, list[tuple[Any, ...]]]:
        """Return key, value and headers of each letter by partition, once there are so many."""
        found: dict[int, list[tuple[Any, ...]]] = {}

        def all_are_there() -> bool:
            for partition in range(self.partitions(topic) or 0):
                found[partition] = [
                    (each.key, each.value, dict(each.headers)) for each in self.records(topic, partition)
                ]
            return sum(map(len, found.values())) >= expected

        until(all_are_there, f"{expected} letters are in {topic}")
        return {partition: sorted(each, key=_place) for partition, each in found.items()}


def _place(letter: tuple[Any, ...]) -> tuple[int, int]:
    """Return partition and offset of the record that a letter is about."""
    headers = letter[2]
    return int(headers["__dlq.errors.partition"]), int(headers["__dlq.errors.offset"])


@contextmanager
def consumer(node: BrokerProcess, group: str, topic: str) -> Iterator[ShareConsumer]:
    config = {
        "bootstrap.servers": node.bootstrap,
        "group.id": group,
        "log_level": 3,
        "share.acknowledgement.mode": "explicit",
    }
    opened = ShareConsumer(config)
    try:
        opened.subscribe([topic])
        yield opened
    finally:
        opened.close()


def acknowledged(opened: ShareConsumer, words: Mapping[bytes, AcknowledgeType], deliveries: int) -> list[bytes]:
    """Acknowledge so many deliveries with the word for their value; return the values in order of their offsets."""
    seen: list[Message] = []

    def is_done() -> bool:
        for message in opened.poll(0.5) or ():
            assert message.error() is None
            seen.append(message)
            opened.acknowledge(message, words[message.value() or b""])
        return len(seen) >= deliveries

    until(is_done, "all records were delivered")
    opened.commit_sync()
    return sorted(message.value() or b"" for message in seen)


ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
WORDS = {b"0": ACCEPT, b"1": REJECT, b"2": RELEASE, b"3": REJECT}


@pytest.mark.parametrize("copies", ["false", "true"])
def test_what_was_rejected_or_delivered_too_often_gets_a_letter(
    fresh_node: FreshNode, answers: TestAnswers, copies: str
) -> None:
    scene = Scene(fresh_node(ALONE))
    scene.create("books")
    scene.create("dlq.books", of="true")
    scene.group("readers", topic_name="dlq.books", copy_record_enable=copies, share_delivery_count_limit="2")
    scene.produce("books", VALUES)
    with consumer(scene.node, "readers", "books") as opened:
        answers.same("delivered", acknowledged(opened, WORDS, 5))
        answers.same("letters", scene.letters("dlq.books", 3))
        scene.produce("books", VALUES, codec=Compression.ZSTD)
        answers.same("delivered of a compressed batch", acknowledged(opened, WORDS, 5))
        answers.same("all letters", scene.letters("dlq.books", 6))


def test_the_topic_is_made_where_that_is_configured(fresh_node: FreshNode, answers: TestAnswers) -> None:
    scene = Scene(fresh_node(ALONE | {CREATES: "true", "num.partitions": "2"}))
    scene.create("books", 3)
    scene.group("readers", topic_name="dlq.made")
    for partition in range(3):
        scene.produce("books", VALUES, partition)
    with consumer(scene.node, "readers", "books") as opened:
        acknowledged(opened, WORDS | {b"2": ACCEPT}, 12)
        answers.same("letters", scene.letters("dlq.made", 6))
    answers.same("described", scene.described(TOPIC, "dlq.made"))


def test_records_whose_letters_cannot_be_written_are_settled(fresh_node: FreshNode, answers: TestAnswers) -> None:
    scene = Scene(fresh_node(ALONE))
    scene.create("plain")
    scene.create("dlq.plain")
    scene.create("other", of="true")
    topics = ("plain", "dlq.plain", "other", "dlq.missing")
    for number, topic in enumerate(topics):
        scene.create(f"books-{number}")
        scene.group(f"readers-{number}", topic_name=topic)
        scene.produce(f"books-{number}", VALUES)
        with consumer(scene.node, f"readers-{number}", f"books-{number}") as opened:
            acknowledged(opened, dict.fromkeys(VALUES, REJECT), 4)
            scene.produce(f"books-{number}", [b"4"])
            answers.same(f"behind those for {topic}", acknowledged(opened, {b"4": ACCEPT}, 1))
        answers.same(f"partitions of {topic}", scene.partitions(topic))
    answers.same("letters", [scene.records(topic, 0) for topic in topics[:3]])
    scene.alter(BROKER, "", topic_name_prefix="")
    scene.create("books")
    scene.group("readers", topic_name="other")
    scene.produce("books", VALUES)
    with consumer(scene.node, "readers", "books") as opened:
        acknowledged(opened, dict.fromkeys(VALUES, REJECT), 4)
        answers.same("without a prefix", scene.letters("other", 4))


def test_letters_are_written_with_share_version_2(fresh_node: FreshNode, answers: TestAnswers) -> None:
    scene = Scene(fresh_node(ALONE))
    node = scene.node
    answers.same("of a new cluster", finalized(node.address, "share.version"))
    scene.create("books")
    scene.create("dlq.books", of="true")
    scene.group("readers", topic_name="dlq.books")

    def move(level: int, type_: int) -> tuple[int, str | None]:
        change = FeatureUpdateKey(feature="share.version", max_version_level=level, upgrade_type=type_)
        answer = call(node.address, UpdateFeaturesRequest(feature_updates=[change]), 2)
        return answer.error_code, answer.error_message

    with consumer(node, "readers", "books") as opened:
        scene.produce("books", VALUES)
        acknowledged(opened, WORDS | {b"2": ACCEPT}, 4)
        answers.same("letters", scene.letters("dlq.books", 2))
        answers.same("down", move(1, SAFE_DOWNGRADE))
        until(lambda: finalized(node.address, "share.version") == 1, "share.version is 1")
        scene.produce("books", VALUES)
        acknowledged(opened, WORDS | {b"2": ACCEPT}, 4)
        answers.same("too high", move(3, UPGRADE)[0])
        answers.same("up", move(2, UPGRADE))
        until(lambda: finalized(node.address, "share.version") == 2, "share.version is 2")
        scene.produce("books", VALUES)
        acknowledged(opened, WORDS | {b"2": ACCEPT}, 4)
        answers.same("letters of the first and the last four", scene.letters("dlq.books", 4))


def test_the_keys_are_described_and_checked(fresh_node: FreshNode, answers: TestAnswers) -> None:
    scene = Scene(fresh_node(ALONE | {PREFIX: "x."}))
    scene.create("books", of="true")
    scene.create("plain")
    for type_, name in ((TOPIC, "books"), (TOPIC, "plain"), (GROUP, "readers"), (BROKER, "1")):
        answers.same(f"{type_} {name}", scene.described(type_, name))
    for name in ("__dlq", "__consumer_offsets", "dlq.a", "with blanks", ""):
        answers.same(f"letters to {name!r}", scene.alter(GROUP, "readers", topic_name=name))
    answers.same("copies: perhaps", scene.alter(GROUP, "readers", copy_record_enable="perhaps"))
    answers.same("copies", scene.alter(GROUP, "readers", copy_record_enable="TRUE"))
    answers.same("of a topic: perhaps", scene.alter(TOPIC, "plain", group_enable="perhaps"))
    answers.same("of a topic", scene.alter(TOPIC, "plain", group_enable="true"))
    answers.same("of all brokers", scene.alter(BROKER, "", auto_create_topics_enable="true"))
    answers.same("of one broker", scene.alter(BROKER, "1", topic_name_prefix="y."))
    until(lambda: ("y.", 1) in [(each[1], each[2] // 2) for each in scene.described(BROKER, "1")], "the change counts")
    for type_, name in ((TOPIC, "plain"), (GROUP, "readers"), (BROKER, "1")):
        answers.same(f"{type_} {name}, altered", scene.described(type_, name))
