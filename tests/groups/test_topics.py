"""The hash over a group's topics is the one that Apache Kafka 4.3.1 computes; the figures come from its own classes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pykbroker.groups.common.topics import FixedTopics, MetadataHash, topic_hash
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.messages.metadata_records import PartitionRecord, RegisterBrokerRecord, TopicRecord
from pykbroker.server.coordinators.group_topics import ImageTopics

EVENTS = bytes.fromhex("01020304050607081112131415161718")
WITH_A_RACK = -4594686079330561112


class RackedTopics(FixedTopics):
    def replica_racks(self, topic_id: bytes) -> Iterator[tuple[str, ...]]:
        for partition in range(self.partition_count(topic_id)):
            yield ("r1",) if partition == 0 else ()


def test_a_topic_s_hash_is_kafka_s() -> None:
    assert topic_hash(RackedTopics({"events": (EVENTS, 3)}), "events") == WITH_A_RACK


def test_racks_are_looked_up_once_for_all_partitions_with_the_same_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    image = MetadataImage()
    image.replay(RegisterBrokerRecord(broker_id=1, broker_epoch=1, rack="r1", fenced=False), 1)
    image.replay(TopicRecord(name="events", topic_id=EVENTS), 2)
    for index in range(100):
        replicas = [1, 2] if index % 2 else [2, 1]
        image.replay(PartitionRecord(partition_id=index, topic_id=EVENTS, replicas=replicas, isr=replicas), index + 3)
    looked_up: list[tuple[int, ...]] = []
    racks_of = ImageTopics._racks_of
    monkeypatch.setattr(
        ImageTopics, "_racks_of", lambda topics, replicas: looked_up.append(replicas) or racks_of(topics, replicas)
    )
    topics = ImageTopics(lambda: image)
    assert topic_hash(topics, "events") != topic_hash(FixedTopics({"events": (EVENTS, 100)}), "events")
    assert looked_up == [(2, 1), (1, 2)]


def test_topics_that_are_not_there_do_not_count() -> None:
    topics = RackedTopics({"events": (EVENTS, 3)})
    assert topic_hash(topics, "orders") == 0
    assert MetadataHash(topics).of(["orders"]) == 0
    assert MetadataHash(topics).of(["orders", "events"]) == MetadataHash(topics).of(["events"]) != 0


def test_a_topic_that_changed_has_another_hash_once_it_is_forgotten() -> None:
    counts = {"events": (EVENTS, 3)}
    hashes = MetadataHash(FixedTopics(counts))
    before = hashes.of(["events"])
    counts["events"] = (EVENTS, 4)
    assert hashes.of(["events"]) == before
    hashes.forget("events")
    assert hashes.of(["events"]) != before
