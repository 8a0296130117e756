"""The hash over a group's topics is the one that Apache Kafka 4.3.1 computes; the figures come from its own classes."""

from __future__ import annotations

from pykbroker.groups.topics import FixedTopics, MetadataHash, topic_hash

EVENTS = bytes.fromhex("01020304050607081112131415161718")
WITH_A_RACK = -4594686079330561112


class RackedTopics(FixedTopics):
    def replica_racks(self, topic_id: bytes, partition: int) -> list[str]:
        return ["r1"] if partition == 0 else []


def test_a_topic_s_hash_is_kafka_s() -> None:
    assert topic_hash(RackedTopics({"events": (EVENTS, 3)}), "events") == WITH_A_RACK


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
