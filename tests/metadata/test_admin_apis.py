"""The admin APIs as clients see them, at all versions; the answers are those that Kafka gives to the same requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import ControllerRegistrationRequest, Listener
from pykbroker.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from pykbroker.protocol.messages.metadata import (
    Cursor,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord
from pykbroker.protocol.messages.reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from pykbroker.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.messages.transactions import InitProducerIdRequest
from pykbroker.state_machine import Result
from tests.metadata.admin import Admin
from tests.metadata.cluster import CLUSTER_ID, Cluster, one_node
from tests.metadata.test_configs import BROKER, SESSION, SET, TOPIC, resource
from tests.metadata.test_topics import creatable, create, grow

NOT_ASKED = -(1 << 31)
ZERO = bytes(16)


def admin(*topics: tuple[str, int], properties: Mapping[str, str] | None = None) -> Admin:
    cluster = one_node(properties)
    for name, partitions in topics:
        assert create(cluster, creatable(name, partitions))[name].error_code == 0
    return Admin(cluster)


def asked(*names: str | None) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


# Metadata.


@pytest.mark.parametrize("version", range(14))
def test_metadata_of_one_topic_in_every_version(version: int) -> None:
    node = admin(("t", 2))
    answer = node.ask(MetadataRequest(topics=asked("t")), version)
    [broker] = answer.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "host1", 9092)
    [topic] = answer.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "t", False)
    assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
        (0, 1, [1], [1]),
        (1, 1, [1], [1]),
    ]
    assert answer.controller_id == (1 if version >= 1 else -1)
    assert answer.cluster_id == (CLUSTER_ID if version >= 2 else None)
    assert topic.topic_id == (node.cluster.image.topics["t"].topic_id if version >= 10 else ZERO)
    assert [p.leader_epoch for p in topic.partitions] == ([0, 0] if version >= 7 else [-1, -1])


def test_an_empty_list_of_topics_is_all_of_them_in_version_0_and_none_later() -> None:
    node = admin(("a", 1), ("b", 1))
    assert [topic.name for topic in node.ask(MetadataRequest(topics=[]), 0).topics] == ["a", "b"]
    assert node.ask(MetadataRequest(topics=[]), 1).topics == []
    assert [topic.name for topic in node.ask(MetadataRequest(topics=None), 13).topics] == ["a", "b"]


def test_unknown_and_invalid_names_and_names_asked_twice() -> None:
    node = admin(("t", 1))
    request = MetadataRequest(topics=asked("t", "nope", "a/b", "", "t"), allow_auto_topic_creation=False)
    rows = [(topic.name, topic.error_code) for topic in node.ask(request, 13).topics]
    assert rows == [("t", 0), ("nope", 3), ("a/b", 17), ("", 17)]


def test_a_missing_topic_is_created_and_there_when_the_client_asks_again() -> None:
    node = admin(properties={"num.partitions": "3"})
    [first] = node.ask(MetadataRequest(topics=asked("new")), 13).topics
    assert (first.error_code, first.partitions) == (3, [])
    for version in (3, 13):
        [later] = node.ask(MetadataRequest(topics=asked("new")), version).topics
        assert (later.error_code, [partition.leader_id for partition in later.partitions]) == (0, [1, 1, 1])


def test_a_missing_topic_is_not_created_where_client_or_broker_forbid_it() -> None:
    forbidden = admin(properties={"auto.create.topics.enable": "false"})
    assert forbidden.ask(MetadataRequest(topics=asked("new")), 13).topics[0].error_code == 3
    node = admin()
    request = MetadataRequest(topics=asked("new"), allow_auto_topic_creation=False)
    assert node.ask(request, 4).topics[0].error_code == 3
    assert not node.cluster.image.topics


def test_a_missing_topic_that_cannot_be_created_stays_unknown(caplog: pytest.LogCaptureFixture) -> None:
    node = admin(("a.b", 1), properties={"default.replication.factor": "2"})
    assert [node.ask(MetadataRequest(topics=asked(name)), 13).topics[0].error_code for name in ("a_b", "c", "c")] == [
        3
    ] * 3
    assert [line.split(": ")[:2] for line in caplog.messages] == [
        ["topic a_b is not created", "INVALID_TOPIC_EXCEPTION"],
        ["topic c is not created", "INVALID_REPLICATION_FACTOR"],
        ["topic c is not created", "INVALID_REPLICATION_FACTOR"],
    ]


def test_topics_are_found_by_id_since_version_12() -> None:
    node = admin(("t", 1))
    topic_id = node.cluster.image.topics["t"].topic_id
    request = MetadataRequest(
        topics=[
            MetadataRequestTopic(topic_id=topic_id, name=None),
            MetadataRequestTopic(topic_id=b"u" * 16, name=None),
            MetadataRequestTopic(topic_id=b"u" * 16, name="t"),
        ]
    )
    rows = [(topic.name, topic.topic_id, topic.error_code) for topic in node.ask(request, 12).topics]
    assert rows == [("t", topic_id, 0), (None, b"u" * 16, 100)]
    refused = node.ask(request, 11)
    rows = [(topic.name, topic.topic_id, topic.error_code) for topic in refused.topics]
    invalid = ErrorCode.INVALID_REQUEST
    assert rows == [("", topic_id, invalid), ("", b"u" * 16, invalid), ("t", b"u" * 16, invalid)]
    assert (refused.brokers, refused.cluster_id, refused.controller_id) == ([], None, -1)


def test_authorized_operations_are_told_to_who_asks() -> None:
    node = admin(("t", 1))
    silent = node.ask(MetadataRequest(topics=asked("t")), 8)
    assert (silent.cluster_authorized_operations, silent.topics[0].topic_authorized_operations) == (NOT_ASKED,) * 2
    request = MetadataRequest(
        topics=asked("t"), include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    told = node.ask(request, 8)
    assert (told.cluster_authorized_operations, told.topics[0].topic_authorized_operations) == (8096, 3576)


def test_a_partition_without_a_leader_says_so_and_a_fenced_broker_is_not_listed() -> None:
    node = admin(("t", 1))
    node.cluster.heartbeat(1, want_fence=True)
    answer = node.ask(MetadataRequest(topics=asked("t")), 13)
    assert (answer.brokers, answer.controller_id) == ([], -1)
    [partition] = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert (partition.isr_nodes, partition.offline_replicas) == ([], [1])


# DescribeTopicPartitions.


def pages(node: Admin, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    answer = node.ask(request, 0)
    rows = [(t.name, t.error_code, [p.partition_index for p in t.partitions]) for t in answer.topics]
    after = answer.next_cursor
    return rows, None if after is None else (after.topic_name, after.partition_index)


@pytest.mark.parametrize(
    ("names", "limit", "cursor", "rows", "after"),
    [
        ([], 2000, None, [("a", 0, [0, 1]), ("b", 0, [0]), ("c", 0, [0, 1, 2])], None),
        ([], 2, None, [("a", 0, [0, 1])], ("b", 0)),
        ([], 4, None, [("a", 0, [0, 1]), ("b", 0, [0]), ("c", 0, [0])], ("c", 1)),
        ([], 9, ("c", 1), [("c", 0, [1, 2])], None),
        ([], 9, ("aa", 1), [("b", 0, [0]), ("c", 0, [0, 1, 2])], None),
        (
            ["c", "a", "nope", "x/y"],
            9,
            None,
            [("a", 0, [0, 1]), ("c", 0, [0, 1, 2]), ("nope", 3, []), ("x/y", 17, [])],
            None,
        ),
        (["a"], 0, ("a", 1), [("a", 0, [1])], None),
        (["a", "a"], 1, None, [("a", 0, [0])], ("a", 1)),
        (["a"], 9, ("u", 0), [("a", 42, [])], None),
        (["a"], 9, ("a", -1), [("a", 42, [])], None),
    ],
)
def test_topics_page_by_page(
    names: list[str], limit: int, cursor: tuple[str, int] | None, rows: list[Any], after: tuple[str, int] | None
) -> None:
    node = admin(("c", 3), ("a", 2), ("b", 1))
    assert pages(node, *names, limit=limit, cursor=cursor) == (rows, after)


def test_the_brokers_own_limit_of_a_page_counts() -> None:
    node = admin(("a", 5), properties={"max.request.partition.size.limit": "2"})
    assert pages(node) == ([("a", 0, [0, 1])], ("a", 2))


def test_lists_that_the_java_client_reads_are_never_null() -> None:
    answer = admin(("t", 1)).ask(DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]), 0)
    [partition] = answer.topics[0].partitions
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
    failed = admin().ask(CreateTopicsRequest(topics=[creatable("a/b")]), 7)
    assert failed.topics[0].configs == []


# DescribeCluster.


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_cluster(version: int) -> None:
    answer = admin().ask(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, CLUSTER_ID, 1)
    assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [(1, "host1", 9092)]
    assert answer.cluster_authorized_operations == 8096


def test_describe_cluster_shows_fenced_brokers_to_who_asks() -> None:
    node = admin()
    node.cluster.register(2)
    assert [each.broker_id for each in node.ask(DescribeClusterRequest(), 2).brokers] == [1]
    rows = node.ask(DescribeClusterRequest(include_fenced_brokers=True), 2).brokers
    assert [(each.broker_id, each.is_fenced) for each in rows] == [(1, False), (2, True)]


def test_each_kind_of_listener_tells_of_its_own_kind_of_node() -> None:
    node = admin()
    wrong = node.ask(DescribeClusterRequest(endpoint_type=2), 1)
    assert wrong.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert "endpoint of type BROKER" in wrong.error_message
    assert node.ask(DescribeClusterRequest(endpoint_type=7), 1).error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    node.cluster.ask(
        ControllerRegistrationRequest(
            controller_id=1, incarnation_id=b"c" * 16, listeners=[Listener(name="CONTROLLER", host="h", port=9093)]
        )
    )
    told = node.ask(DescribeClusterRequest(endpoint_type=2), 1, kind="controller")
    assert [(each.broker_id, each.host, each.port) for each in told.brokers] == [(1, "h", 9093)]


# CreateTopics, CreatePartitions, DeleteTopics.


@pytest.mark.parametrize("version", range(2, 8))
def test_create_topics_in_every_version(version: int) -> None:
    node = admin()
    [row] = node.ask(CreateTopicsRequest(topics=[creatable("t", 3)]), version).topics
    assert (row.name, row.error_code, row.error_message) == ("t", 0, None)
    assert len(row.configs) == (33 if version >= 5 else 0)
    assert (row.topic_id != ZERO) == (version >= 7)
    assert all(each.leader == 1 for each in node.cluster.image.topics["t"].partitions.values())


@pytest.mark.parametrize("version", range(1, 7))
def test_delete_topics_in_every_version(version: int) -> None:
    node = admin(("t", 1))
    names = DeleteTopicsRequest(topic_names=["t"]) if version < 6 else None
    request = names or DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])
    [row] = node.ask(request, version).responses
    assert (row.name, row.error_code) == ("t", 0)
    assert not node.cluster.image.topics


@pytest.mark.parametrize("version", range(4))
def test_create_partitions_in_every_version(version: int) -> None:
    node = admin(("t", 1))
    rows = node.ask(CreatePartitionsRequest(topics=[grow("t", 2), grow("u", 2)]), version).results
    assert {row.name: row.error_code for row in rows} == {"t": 0, "u": 3}


# Configurations.


def describe(node: Admin, type_: int, name: str, keys: list[str] | None = None, version: int = 4, **flags: bool) -> Any:
    resources = [DescribeConfigsResource(resource_type=type_, resource_name=name, configuration_keys=keys)]
    [row] = node.ask(DescribeConfigsRequest(resources=resources, **flags), version).results
    assert (row.resource_type, row.resource_name) == (type_, name)
    return row


@pytest.mark.parametrize("version", range(1, 5))
def test_describe_configs_gives_every_key_for_none_and_for_an_empty_list(version: int) -> None:
    node = admin(("t", 1))
    for keys in (None, []):
        row = describe(node, TOPIC, "t", keys, version)
        assert (row.error_code, row.error_message, len(row.configs)) == (0, "", 33)
        sources = {config.name: config.config_source for config in row.configs if config.config_source != 5}
        assert sources == {"min.insync.replicas": 3}, "it stands in the metadata along with eligible leader replicas"
        assert all(config.synonyms == [] for config in row.configs)
    assert len(describe(node, BROKER, "1", None, version).configs) == 340


def test_describe_configs_gives_the_keys_that_were_asked_for_with_type_and_synonyms() -> None:
    row = describe(admin(("t", 1)), TOPIC, "t", ["cleanup.policy", "nope"], include_synonyms=True)
    [config] = row.configs
    assert (config.name, config.value, config.config_type, config.read_only) == ("cleanup.policy", "delete", 7, False)
    assert (config.is_sensitive, config.documentation) == (False, None)
    [synonym] = config.synonyms
    assert (synonym.name, synonym.value, synonym.source) == ("log.cleanup.policy", "delete", 5)


@pytest.mark.parametrize(
    ("type_", "name", "error_code", "message"),
    [
        (TOPIC, "nope", 3, ""),
        (TOPIC, "a/b", 17, "Topic name is invalid: 'a/b'"),
        (TOPIC, "", 17, "the empty string is not allowed"),
        (BROKER, "2", 42, "Unexpected broker id, expected 1 or empty string, but received 2"),
        (BROKER, "abc", 42, "Broker id must be an integer, but it is: abc"),
        (8, "2", 42, "Unexpected broker id, expected 1 but received 2"),
        (3, "x", 42, "resource type 3"),
    ],
)
def test_what_has_no_configurations_to_describe(type_: int, name: str, error_code: int, message: str) -> None:
    row = describe(admin(), type_, name)
    assert (row.error_code, row.configs) == (error_code, [])
    assert message in row.error_message


@pytest.mark.parametrize("version", [0, 1])
def test_incremental_alter_configs_speaks_for_this_broker_and_all_brokers(version: int) -> None:
    node = admin(("t", 1))
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(BROKER, "2", ("num.io.threads", SET, "4")),
            resource(BROKER, "1", ("num.io.threads", SET, "4")),
            resource(BROKER, "", ("num.io.threads", SET, "5")),
            resource(TOPIC, "t", ("retention.ms", SET, "6")),
        ]
    )
    rows = {(r.resource_type, r.resource_name): r for r in node.ask(request, version).responses}
    assert {name: row.error_code for name, row in rows.items()} == {
        (BROKER, "2"): 42,
        (BROKER, "1"): 0,
        (BROKER, ""): 0,
        (TOPIC, "t"): 0,
    }
    assert rows[BROKER, "2"].error_message == "Unexpected broker id, expected 1, but received 2"
    [shown] = describe(node, BROKER, "1", ["num.io.threads"]).configs
    assert (shown.value, shown.config_source) == ("4", 2)
    everywhere = {each.name: (each.value, each.config_source) for each in describe(node, BROKER, "").configs}
    assert everywhere == {"num.io.threads": ("5", 3), "min.insync.replicas": ("1", 3)}


def test_long_names_of_many_parts_are_looked_at_soon() -> None:
    """As long as a name may be; the loop is watched. Nobody knows them, and a plugin of Kafka might."""
    node = admin()
    long = "listener.name." + "a." * 16_000
    request = IncrementalAlterConfigsRequest(
        resources=[resource(BROKER, "1", *((f"{long}{number}", SET, "4") for number in range(20)))]
    )
    (row,) = node.ask(request, 1).responses
    assert row.error_code == ErrorCode.NONE


def test_list_config_resources() -> None:
    node = admin(("t", 1), ("u", 1))

    def listed(*types: int, version: int = 1) -> list[tuple[int, str]]:
        answer = node.ask(ListConfigResourcesRequest(resource_types=list(types)), version)
        assert answer.error_code == 0
        return [(each.resource_type, each.resource_name) for each in answer.config_resources]

    assert listed() == [(BROKER, "1"), (8, "1"), (TOPIC, "t"), (TOPIC, "u")]
    assert listed(TOPIC) == [(TOPIC, "t"), (TOPIC, "u")]
    assert listed(16, 32) == []
    assert node.ask(ListConfigResourcesRequest(resource_types=[99]), 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert node.ask(ListConfigResourcesRequest(), 0).config_resources == []
    node.ask(IncrementalAlterConfigsRequest(resources=[resource(16, "all", ("metrics", SET, "*"))]), 1)
    node.ask(IncrementalAlterConfigsRequest(resources=[resource(32, "g", (SESSION, SET, "46000"))]), 1)
    assert listed(16, 32) == [(16, "all"), (32, "g")]
    assert listed(32) == [(32, "g")]
    assert [each.resource_name for each in node.ask(ListConfigResourcesRequest(), 0).config_resources] == ["all"]


# Producer ids, reassignments.


@pytest.mark.parametrize("version", range(6))
def test_idempotent_producers_get_ids_that_nobody_else_gets(version: int) -> None:
    node = admin()
    answers = [
        node.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), version) for _ in range(3)
    ]
    assert [(a.error_code, a.producer_id, a.producer_epoch) for a in answers] == [(0, 0, 0), (0, 1, 0), (0, 2, 0)]
    assert node.cluster.image.next_producer_id == 1000
    restarted = Admin(node.cluster)
    assert restarted.ask(InitProducerIdRequest(transactional_id=None), version).producer_id == 1000


def test_a_block_of_producer_ids_is_followed_by_the_next() -> None:
    node = admin()
    ids = [node.ask(InitProducerIdRequest(transactional_id=None), 5).producer_id for _ in range(1001)]
    assert ids == list(range(1001))


@pytest.mark.parametrize(
    ("request_", "error_code"),
    [
        (InitProducerIdRequest(transactional_id="", transaction_timeout_ms=60_000), ErrorCode.INVALID_REQUEST),
        (InitProducerIdRequest(transactional_id=None, producer_id=5), ErrorCode.INVALID_REQUEST),
        (InitProducerIdRequest(transactional_id=None, producer_epoch=5), ErrorCode.INVALID_REQUEST),
    ],
)
def test_producer_ids_that_are_not_given(request_: InitProducerIdRequest, error_code: ErrorCode) -> None:
    answer = admin().ask(request_, 5)
    assert (ErrorCode(answer.error_code), answer.producer_id, answer.producer_epoch) == (error_code, -1, -1)


def test_a_producer_with_an_id_of_its_own_gets_a_new_one() -> None:
    answer = admin().ask(InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=3), 5)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 0, 0)


def test_a_broker_that_is_not_registered_yet_asks_producers_to_come_again() -> None:
    answer = Admin(Cluster()).ask(InitProducerIdRequest(transactional_id=None), 5)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_reassignments_are_those_that_the_metadata_has() -> None:
    node = admin(("t", 2))
    assert node.ask(ListPartitionReassignmentsRequest(topics=None), 0).topics == []
    topic_id = node.cluster.image.topics["t"].topic_id
    change = PartitionChangeRecord(partition_id=1, topic_id=topic_id, replicas=[1, 2], adding_replicas=[2])
    node.cluster.take(Result([change]))
    [topic] = node.ask(ListPartitionReassignmentsRequest(topics=None), 0).topics
    [moving] = topic.partitions
    assert (topic.name, moving.partition_index, moving.replicas, moving.adding_replicas) == ("t", 1, [1, 2], [2])
    named = [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 7]) for name in ("t", "nope")]
    assert node.ask(ListPartitionReassignmentsRequest(topics=named), 0).topics == []
