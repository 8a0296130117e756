"""Creating and deleting topics, adding partitions: requests and the answers that Kafka gives to them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pykbroker.config import topic_keys
from pykbroker.metadata.topic_names import invalid_reason
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.metadata.cluster import Cluster, directory_id, one_node


def creatable(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    configs: dict[str, str | None] | None = None,
    assignments: list[list[int]] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
            for index, ids in enumerate(assignments or [])
        ],
    )


def create(cluster: Cluster, *topics: CreatableTopic, validate_only: bool = False) -> dict[str, Any]:
    response = cluster.ask(CreateTopicsRequest(topics=list(topics), validate_only=validate_only))
    return {topic.name: topic for topic in response.topics}


BAD_NAMES = ["", ".", "..", "../../etc/passwd", "a/b", "a\\b", "a\0b", "a\nb", "a b", "ünï", "a" * 250, "٣", "a:b"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_name_is_refused_and_nothing_is_recorded(name: str) -> None:
    cluster = one_node()
    records, response = cluster.step(CreateTopicsRequest(topics=[creatable(name)]))
    assert not records
    [row] = response.topics
    assert (row.error_code, row.num_partitions, row.configs) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1, [])
    assert row.error_message.startswith("Topic name is invalid: ")


@pytest.mark.parametrize("name", ["a" * 249, "...", "_", "-", "a.b_c-D9"])
def test_a_good_name_is_taken(name: str) -> None:
    assert invalid_reason(name) is None
    assert create(one_node(), creatable(name))[name].error_code == 0


REFUSED = [
    (creatable("t", partitions=0), ErrorCode.INVALID_PARTITIONS, "non-positive"),
    (creatable("t", partitions=-2), ErrorCode.INVALID_PARTITIONS, "non-positive"),
    (creatable("t", partitions=1_000_000), ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions"),
    (creatable("t", partitions=10_001), ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions"),
    (creatable("t", replicas=0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
    (creatable("t", replicas=-2), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
    (creatable("t", replicas=5), ErrorCode.INVALID_REPLICATION_FACTOR, "only 1 broker(s) are registered"),
    (creatable("t.x"), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic 't.x' collides with existing topic: t_x"),
    (creatable("t_x"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't_x' already exists."),
    (creatable("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "prohibited"),
    (creatable("t", -1, 1, assignments=[[1]]), ErrorCode.INVALID_REQUEST, "replication factor was not set to -1"),
    (creatable("t", 1, -1, assignments=[[1]]), ErrorCode.INVALID_REQUEST, "numPartitions was not set to -1"),
    (creatable("t", -1, -1, assignments=[[2]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 2, but no such broker"),
    (creatable("t", -1, -1, assignments=[[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 1 more than once"),
    (creatable("t", -1, -1, assignments=[[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty replica list"),
    (creatable("t", configs={"nope": "1"}), ErrorCode.INVALID_CONFIG, "Unknown topic config name: nope"),
    (
        creatable("t", configs={"retention.ms": "abc"}),
        ErrorCode.INVALID_CONFIG,
        "Invalid value abc for configuration retention.ms: Not a number of type LONG",
    ),
    (
        creatable("t", configs={"retention.ms": "-2"}),
        ErrorCode.INVALID_CONFIG,
        "Invalid value -2 for configuration retention.ms: Value must be at least -1",
    ),
    (creatable("t", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG, "Null value not supported"),
    (creatable("t", configs={"cleanup.policy": "foo"}), ErrorCode.INVALID_CONFIG, "one of: compact, delete"),
    (creatable("t", configs={"cleanup.policy": "delete,"}), ErrorCode.INVALID_CONFIG, "must not be empty"),
    (creatable("t", configs={"compression.gzip.level": "0"}), ErrorCode.INVALID_CONFIG, "between 1 and 9 or equal to"),
    (creatable("t", configs={"min.cleanable.dirty.ratio": "2"}), ErrorCode.INVALID_CONFIG, "Invalid value 2.0"),
    (creatable("t", configs={"preallocate": "yes"}), ErrorCode.INVALID_CONFIG, "either true or false"),
    (creatable("t", configs={"segment.bytes": "100"}), ErrorCode.INVALID_CONFIG, "at least 1048576"),
    (creatable("t", configs={"segment.bytes": "1_048_576"}), ErrorCode.INVALID_CONFIG, "Not a number of type INT"),
    (creatable("t", configs={"remote.storage.enable": "true"}), ErrorCode.INVALID_CONFIG, "Tiered Storage"),
    (
        creatable("t", configs={"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}),
        ErrorCode.INVALID_CONFIG,
        "min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
    ),
    (creatable("t", configs={"leader.replication.throttled.replicas": "x"}), ErrorCode.INVALID_CONFIG, "literal '*'"),
]


@pytest.mark.parametrize(("topic", "error_code", "message"), REFUSED, ids=[case[2] for case in REFUSED])
def test_what_kafka_refuses_to_create_is_refused_with_its_error(
    topic: CreatableTopic, error_code: ErrorCode, message: str
) -> None:
    cluster = one_node()
    create(cluster, creatable("t_x"))
    row = create(cluster, topic)[topic.name]
    assert ErrorCode(row.error_code) is error_code
    assert message in row.error_message
    assert list(cluster.image.topics) == ["t_x"]


@pytest.mark.parametrize(
    "configs",
    [
        {"cleanup.policy": "delete,delete"},
        {"cleanup.policy": ""},
        {"cleanup.policy": "compact, delete"},
        {"retention.ms": " 5 "},
        {"min.insync.replicas": "5"},
        {"compression.gzip.level": "-1"},
        {"follower.replication.throttled.replicas": "0:1,1:2"},
        {"leader.replication.throttled.replicas": "*"},
        {"preallocate": "TRUE"},
    ],
)
def test_configurations_that_kafka_takes_are_taken_as_they_were_written(configs: dict[str, str | None]) -> None:
    cluster = one_node()
    row = create(cluster, creatable("t", configs=configs))["t"]
    assert row.error_code == 0, row.error_message
    assert cluster.image.topic_config("t") == configs


def test_a_refused_topic_does_not_keep_the_others_from_being_created() -> None:
    cluster = one_node()
    rows = create(cluster, creatable("good"), creatable("a/b"), creatable("two"), creatable("two"))
    assert {name: row.error_code for name, row in rows.items()} == {"good": 0, "a/b": 17, "two": 42}
    assert rows["two"].error_message == "Duplicate topic name."
    assert list(cluster.image.topics) == ["good"]


def test_more_than_10000_partitions_in_one_request_are_refused_all_together() -> None:
    rows = create(one_node(), creatable("a", 10_000), creatable("b", 2))
    assert {row.error_code for row in rows.values()} == {ErrorCode.POLICY_VIOLATION}


def test_minus_one_stands_for_the_brokers_defaults() -> None:
    cluster = one_node({"num.partitions": "4"})
    row = create(cluster, creatable("t", -1, -1))["t"]
    assert (row.num_partitions, row.replication_factor) == (4, 1)
    assert len(cluster.image.topics["t"].partitions) == 4


def test_a_created_topic_is_answered_with_all_of_its_configurations() -> None:
    cluster = one_node({"log.retention.hours": "24", "message.max.bytes": "2000000"})
    row = create(cluster, creatable("t", configs={"segment.bytes": "2097152"}))["t"]
    configs = {config.name: config for config in row.configs}
    assert list(configs) == sorted(topic_keys())
    assert len(configs) == 33
    assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == ("2097152", 1)
    assert (configs["max.message.bytes"].value, configs["max.message.bytes"].config_source) == ("2000000", 4)
    assert configs["retention.ms"].value == "86400000"
    assert (configs["flush.ms"].value, configs["flush.ms"].config_source) == ("9223372036854775807", 5)


def test_validate_only_answers_and_records_nothing() -> None:
    cluster = one_node()
    before = len(cluster.log)
    row = create(cluster, creatable("t", 3), validate_only=True)["t"]
    assert (row.error_code, row.num_partitions) == (0, 3)
    assert len(cluster.log) == before
    assert cluster.image.topic("t") is None


def test_a_new_partition_is_led_at_once_in_its_brokers_only_directory() -> None:
    cluster = one_node()
    row = create(cluster, creatable("t"))["t"]
    partition = cluster.image.partition("t", 0)
    assert partition is not None
    assert (partition.leader, partition.isr, partition.leader_epoch, partition.partition_epoch) == (1, (1,), 0, 0)
    assert partition.directories == (directory_id(1),)
    assert cluster.changes.partitions == {(row.topic_id, 0): None}


def test_no_topic_is_created_while_no_broker_is_there() -> None:
    cluster = Cluster()
    assert create(cluster, creatable("t"))["t"].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    cluster.register(1)
    assert create(cluster, creatable("t"))["t"].error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_an_explicit_assignment_gives_leaders_in_its_order() -> None:
    cluster = Cluster()
    for broker_id in (1, 2, 3):
        cluster.add_broker(broker_id)
    row = create(cluster, creatable("t", -1, -1, assignments=[[3, 1], [2, 3]]))["t"]
    assert (row.num_partitions, row.replication_factor) == (2, 2)
    assert [p.leader for p in cluster.image.topics["t"].partitions.values()] == [3, 2]
    uneven = create(cluster, creatable("u", -1, -1, assignments=[[3, 1], [2]]))["u"]
    assert uneven.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    holes = CreatableTopic(
        name="v",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(partition_index=1, broker_ids=[1])],
    )
    assert create(cluster, holes)["v"].error_message == "partitions should be a consecutive 0-based integer sequence"


def test_leaders_are_spread_and_replicas_are_in_different_racks() -> None:
    cluster = Cluster()
    for broker_id, rack in ((1, "a"), (2, "a"), (3, "b"), (4, "b")):
        cluster.add_broker(broker_id, rack)
    create(cluster, creatable("t", 8, 2))
    partitions = list(cluster.image.topics["t"].partitions.values())
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    assert Counter(racks[p.leader] for p in partitions) == {"a": 4, "b": 4}
    assert Counter(replica for p in partitions for replica in p.replicas) == dict.fromkeys(racks, 4)
    assert all({racks[replica] for replica in p.replicas} == {"a", "b"} for p in partitions)


# Adding partitions.


def create_partitions(cluster: Cluster, *topics: CreatePartitionsTopic, validate_only: bool = False) -> dict[str, Any]:
    response = cluster.ask(CreatePartitionsRequest(topics=list(topics), validate_only=validate_only))
    return {row.name: row for row in response.results}


def grow(name: str, count: int, assignments: list[list[int]] | None = None) -> CreatePartitionsTopic:
    return CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=broker_ids) for broker_ids in assignments],
    )


@pytest.mark.parametrize(
    ("wanted", "error_code", "message"),
    [
        (grow("nope", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (grow("t", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            grow("t", 1),
            ErrorCode.INVALID_PARTITIONS,
            "The topic t currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            grow("t", 4, [[1]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            grow("t", 3, [[]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            grow("t", 3, [[1, 1]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            grow("t", 3, [[2]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 2, but no such broker is registered.",
        ),
        (grow("t", 20_000), ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."),
    ],
)
def test_partitions_that_cannot_be_added(
    wanted: CreatePartitionsTopic, error_code: ErrorCode, message: str | None
) -> None:
    cluster = one_node()
    create(cluster, creatable("t", 2))
    row = create_partitions(cluster, wanted)[wanted.name]
    assert (ErrorCode(row.error_code), row.error_message) == (error_code, message)
    assert len(cluster.image.topics["t"].partitions) == 2


def test_every_topic_of_create_partitions_has_a_row_of_its_own() -> None:
    cluster = one_node()
    create(cluster, creatable("a"), creatable("b"))
    rows = create_partitions(cluster, grow("a", 3), grow("b", 1), grow("c", 2))
    assert {name: row.error_code for name, row in rows.items()} == {"a": 0, "b": 37, "c": 3}
    assert list(cluster.image.topics["a"].partitions) == [0, 1, 2]
    twice = create_partitions(cluster, grow("b", 3), grow("b", 4))
    assert (twice["b"].error_code, twice["b"].error_message) == (42, "Duplicate topic name.")
    assert create_partitions(cluster, grow("b", 9), validate_only=True)["b"].error_code == 0
    assert len(cluster.image.topics["b"].partitions) == 1


# Deleting.


def delete(cluster: Cluster, *topics: DeleteTopicState) -> list[tuple[str | None, bytes, int]]:
    response = cluster.ask(DeleteTopicsRequest(topics=list(topics)))
    return [(row.name, row.topic_id, row.error_code) for row in response.responses]


def test_topics_are_deleted_by_name_and_by_id() -> None:
    cluster = one_node()
    rows = create(cluster, creatable("a", configs={"retention.ms": "5"}), creatable("b"), creatable("c"))
    ids = {name: row.topic_id for name, row in rows.items()}
    assert delete(cluster, DeleteTopicState(name="a"), DeleteTopicState(topic_id=ids["b"])) == [
        ("a", ids["a"], 0),
        ("b", ids["b"], 0),
    ]
    assert list(cluster.image.topics) == ["c"]
    assert not cluster.image.topic_config("a")
    assert set(cluster.changes.deleted_topics) == {ids["a"], ids["b"]}
    assert cluster.changes.partitions == {(ids["c"], 0): None}
    assert create(cluster, creatable("a"))["a"].topic_id != ids["a"]
    assert not cluster.image.topic_config("a")


def test_topics_that_cannot_be_deleted() -> None:
    cluster = one_node()
    topic_id = create(cluster, creatable("a"), creatable("b"))["a"].topic_id
    zero, unknown = bytes(16), b"u" * 16
    assert delete(cluster, DeleteTopicState(name="nope")) == [("nope", zero, 3)]
    assert delete(cluster, DeleteTopicState(topic_id=unknown)) == [(None, unknown, 100)]
    assert delete(cluster, DeleteTopicState()) == [(None, zero, 42)]
    assert delete(cluster, DeleteTopicState(name="a", topic_id=topic_id)) == [("a", topic_id, 42)]
    assert delete(cluster, DeleteTopicState(name="b"), DeleteTopicState(name="b")) == [("b", zero, 42)]
    assert delete(cluster, DeleteTopicState(name="a"), DeleteTopicState(topic_id=topic_id)) == [
        ("a", zero, 42),
        (None, topic_id, 42),
    ]
    assert list(cluster.image.topics) == ["a", "b"]


def test_topic_names_are_taken_from_the_field_of_older_versions() -> None:
    cluster = one_node()
    create(cluster, creatable("a"))
    response = cluster.ask(DeleteTopicsRequest(topic_names=["a", "nope"]))
    assert [(row.name, row.error_code) for row in response.responses] == [("nope", 3), ("a", 0)]


def test_deletion_can_be_switched_off() -> None:
    cluster = one_node({"delete.topic.enable": "false"})
    create(cluster, creatable("a"))
    assert delete(cluster, DeleteTopicState(name="a"))[0][2] == ErrorCode.TOPIC_DELETION_DISABLED
    assert "a" in cluster.image.topics
