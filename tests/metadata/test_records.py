"""Frames and records of the metadata log, against bytes that Apache Kafka wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykbroker.metadata.features import SUPPORTED_FEATURES, bootstrap_records, bootstrap_transaction
from pykbroker.metadata.image import MetadataImage
from pykbroker.metadata.records import decode_record, encode_record
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.messages.metadata_records import (
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from pykbroker.protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.metadata.cluster import directory_id, one_node

RECORDED = [
    (name, bytes.fromhex(value))
    for name, value in (
        line.split()
        for line in Path(__file__).with_name("kafka_4_3_records.txt").read_text().splitlines()
        if not line.startswith("#")
    )
]


@pytest.mark.parametrize(("name", "value"), RECORDED, ids=[f"{i}-{name}" for i, (name, _) in enumerate(RECORDED)])
def test_a_record_of_kafka_is_read_and_written_back_as_it_was(name: str, value: bytes) -> None:
    record = decode_record(value)
    assert type(record).__name__ == name
    assert encode_record(record) == value


def test_a_new_cluster_begins_with_kafkas_records_but_for_features_that_are_not_served() -> None:
    ours = [encode_record(record) for record in bootstrap_transaction(bootstrap_records())]
    kafkas = [(decode_record(value), value) for _, value in RECORDED[:9]]
    assert ours == [
        value
        for record, value in kafkas
        if isinstance(record, (BeginTransactionRecord, EndTransactionRecord))
        or (isinstance(record, FeatureLevelRecord) and record.name in SUPPORTED_FEATURES)
    ]


def test_a_created_topic_is_recorded_in_kafkas_bytes() -> None:
    """Kafka's records for a topic foo of two partitions, and ours for the same request."""
    kafkas = [
        value
        for name, value in RECORDED
        if name in ("TopicRecord", "ConfigRecord", "PartitionRecord") and (b"foo" in value or name == "PartitionRecord")
    ][:4]
    topic = decode_record(kafkas[0])
    assert isinstance(topic, TopicRecord)
    cluster = one_node()
    records, response = cluster.step(
        CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name="foo",
                    num_partitions=2,
                    replication_factor=1,
                    configs=[CreatableTopicConfig(name="retention.ms", value=" 5 ")],
                )
            ]
        )
    )
    ours = [encode_record(record) for record in records]
    kafka_directory = decode_record(kafkas[2])
    assert isinstance(kafka_directory, PartitionRecord)
    replaced = [
        value.replace(topic.topic_id, response.topics[0].topic_id).replace(
            kafka_directory.directories[0], directory_id(1)
        )
        for value in kafkas
    ]
    assert ours == replaced


def test_a_registration_is_recorded_in_the_versions_that_kafka_uses() -> None:
    cluster = one_node()
    registration = next(value for value in cluster.log if isinstance(decode_record(value), RegisterBrokerRecord))
    assert registration[:3] == bytes([1, 0, 4])
    unfenced = next(value for value in cluster.log if isinstance(decode_record(value), BrokerRegistrationChangeRecord))
    assert unfenced[:3] == bytes([1, 17, 0])


def test_kafkas_records_replay_into_an_image() -> None:
    image = MetadataImage()
    for offset, (name, value) in enumerate(RECORDED[:20]):
        if name not in ("PartitionChangeRecord", "ConfigRecord"):
            image.replay(decode_record(value), offset)
    assert image.features["metadata.version"] == 30
    assert image.brokers[1].endpoints[0].port == 29192
    assert not image.in_transaction


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (b"", "ends within its frame"),
        (b"\x01", "ends within its frame"),
        (b"\x02\x0c\x00", "frame version 2"),
        (b"\x01\x63\x00", "type 99"),
        (b"\x01\x04\x09", "type 4 version 9"),
        (encode_record(ConfigRecord(resource_type=2, resource_name="t", name="n", value="v")) + b"x", "1 bytes follow"),
        (encode_record(ConfigRecord(resource_type=2, resource_name="t", name="n", value="v"))[:-3], "cut short"),
    ],
)
def test_bytes_that_are_no_record_are_refused(value: bytes, complaint: str) -> None:
    with pytest.raises(MalformedMessage, match=complaint):
        decode_record(value)


@pytest.mark.parametrize(
    ("levels", "share_version"),
    [
        ({}, 1),
        ({"metadata.version": 31}, 2),
        ({"metadata.version": 33}, 2),
        ({"metadata.version": 33, "share.version": 1}, 1),
    ],
)
def test_a_new_cluster_has_dead_letter_queues_from_4_4_on(levels: dict[str, int], share_version: int) -> None:
    records = bootstrap_records(levels)
    found = [
        each.feature_level for each in records if isinstance(each, FeatureLevelRecord) and each.name == "share.version"
    ]
    assert found == [share_version]
