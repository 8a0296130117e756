"""The errors that Apache Kafka's handlers have for each API, and stories for those that random values do not reach.

`EXPECTED` is read off the answers' documentation in Kafka's clients and off its handlers (`KafkaApis`,
`ControllerApis`, the coordinators). `NOT_REACHED` says why one is not met by sequences against a node that is alone and
whose disk works.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pykbroker.protocol.api_keys import ApiKey

from .field_values import LARGE
from .nodes import GROUPS, PLAIN, RIGHTS
from .quorum_stories import QUORUM_ERRORS
from .sequences import Sequence, Step, Tree, ref
from .share_stories import SHARE_ERRORS
from .stories import (
    A_BROKER,
    A_GROUP,
    A_TOPIC,
    ABORTED,
    ACLS,
    CLASSIC_GROUP,
    CONSUMER_GROUP,
    DELETING_GROUP,
    DELETING_OFFSETS,
    DESCRIBING_CONSUMERS,
    DESCRIBING_GROUP,
    DESCRIBING_PRODUCERS,
    DESCRIBING_TRANSACTION,
    LISTING_GROUPS,
    LISTING_TRANSACTIONS,
    M1,
    P1,
    TOPICS_STORY,
    acl,
    adding,
    adding_group,
    altering,
    beating,
    committing,
    committing_in_transaction,
    consumer_beat,
    continuing,
    creating,
    deleting,
    deleting_records,
    describing,
    electing,
    ending,
    epoch_end,
    fetching,
    fetching_offsets,
    in_transaction,
    init_producer,
    joining,
    leaving,
    list_offsets,
    metadata,
    on_controller,
    on_every_version,
    producing,
    quota,
    reassigning,
    replacing,
    scram,
    step,
    syncing,
    without_acls,
)
from .streams_stories import STREAMS_ERRORS


def _expected() -> Iterator[tuple[int, frozenset[str]]]:
    for line in Path(__file__).with_name("error_codes.txt").read_text().splitlines():
        if not line.startswith("#"):
            key, _, *codes = line.split()
            yield int(key), frozenset(codes)


EXPECTED: Final[Mapping[int, frozenset[str]]] = dict(_expected())
"""Names of errors by API key, beside NONE."""

NOT_REACHED: Final[Mapping[str, str]] = {
    "COORDINATOR_LOAD_IN_PROGRESS": "while a coordinator loads: a moment, which the tests of restarts meet",
    "COORDINATOR_NOT_AVAILABLE": "a node that is alone coordinates everything",
    "NOT_COORDINATOR": "a node that is alone coordinates everything",
    "NOT_CONTROLLER": "a node that is alone is the active controller",
    "NOT_LEADER_OR_FOLLOWER": "a node that is alone leads every partition",
    "LEADER_NOT_AVAILABLE": "a node that is alone leads every partition",
    "OFFSET_NOT_AVAILABLE": "a new leader's high watermark, which needs followers",
    "NEW_LEADER_ELECTED": "needs several brokers",
    "INELIGIBLE_REPLICA": "needs several brokers",
    "FENCED_LEADER_EPOCH": "needs a leader that changed, and so several brokers",
    "NOT_ENOUGH_REPLICAS": "needs several brokers",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "needs several brokers",
    "REQUEST_TIMED_OUT": "a matter of time",
    "KAFKA_STORAGE_ERROR": "needs a disk that fails (compat_tests/test_failing_disks.py)",
    "ELIGIBLE_LEADERS_NOT_AVAILABLE": "needs several brokers",
    "PREFERRED_LEADER_NOT_AVAILABLE": "needs several brokers",
    "REPLICA_NOT_AVAILABLE": "needs several brokers",
    "GROUP_MAX_SIZE_REACHED": "needs a group of more members than sequences have (compat_tests/state_machines)",
    "POLICY_VIOLATION": "policies are classes of one's own, which are not offered",
    "THROTTLING_QUOTA_EXCEEDED": "a matter of time (compat_tests/test_throttling.py)",
    "TOPIC_DELETION_DISABLED": "a setting of the node (Kafka's own DeleteTopicsRequestWithDeletionDisabledTest)",
    "RECORD_LIST_TOO_LARGE": "needs batches of more than a segment: MESSAGE_TOO_LARGE comes first",
    "UNSUPPORTED_SASL_MECHANISM": "of SaslHandshake: needs a listener with SASL (compat_tests/sasl)",
    "CORRUPT_MESSAGE": "of Fetch: needs files that were changed (compat_tests/test_damage.py)",
    "CONCURRENT_TRANSACTIONS": "while markers are written: the asker waits for them",
    "DUPLICATE_BROKER_REGISTRATION": "needs several brokers",
    "DUPLICATE_VOTER": "needs voters in the metadata log (KIP-853; compat_tests/clusters)",
    "VOTER_NOT_FOUND": "needs voters in the metadata log (KIP-853; compat_tests/clusters)",
    "INCONSISTENT_CLUSTER_ID": "needs voters in the metadata log (KIP-853; compat_tests/clusters)",
    "CLUSTER_AUTHORIZATION_FAILED": "where the right is to alter the cluster, or to act as a part of it: the asker "
    "and the node need those, and are one user",
    "GROUP_AUTHORIZATION_FAILED": "of transactions: in the stories the transactional id is refused before the group "
    "(compat_tests/acls)",
    "TOPIC_AUTHORIZATION_FAILED": "other errors come first in the stories (compat_tests/acls)",
    "INVALID_GROUP_ID": "of OffsetCommit: an id cannot be null there",
    "INVALID_REPLICATION_FACTOR": "of AlterPartitionReassignments: needs several brokers",
    "INVALID_REQUEST": "of AlterPartition: needs the broker's epoch; of AddRaftVoter: voters in the metadata log",
    "INVALID_TXN_STATE": "while markers are written: the asker waits for them",
    "REBALANCE_IN_PROGRESS": "of JoinGroup: a matter of time",
    "UNKNOWN_TOPIC_ID": "of AlterPartition: needs the broker's epoch",
    "UNKNOWN_TOPIC_OR_PARTITION": "of AlterPartition: needs the broker's epoch",
    "UNSUPPORTED_VERSION": "of ApiVersions: needs a version that no schema has (compat_tests/hostile)",
    "FENCED_STATE_EPOCH": "of DeleteShareGroupState: names no epoch",
    "GROUP_ID_NOT_FOUND": "of the state and offsets of share groups: documented, and never said",
    "INVALID_VOTER_KEY": "needs voters in the metadata log (KIP-853; compat_tests/clusters)",
    "POSITION_OUT_OF_RANGE": "Kafka fails while it writes the answer of a FetchSnapshot with an error",
    "SNAPSHOT_NOT_FOUND": "Kafka fails while it writes the answer of a FetchSnapshot with an error",
    "UNKNOWN_LEADER_EPOCH": "of FetchSnapshot: Kafka fails while it writes an answer with an error",
    "STREAMS_INVALID_TOPOLOGY_EPOCH": "changes of a topology are INVALID_REQUEST in Kafka 4.3.1",
    "STREAMS_TOPOLOGY_FENCED": "changes of a topology are INVALID_REQUEST in Kafka 4.3.1",
    "TELEMETRY_TOO_LARGE": "needs a push of more than a mebibyte (compat_tests/telemetry)",
    "UNRELEASED_INSTANCE_ID": "of streams groups: Kafka 4.3.1 has no static members there",
    "INVALID_UPDATE_VERSION": "of AlterPartition: needs several brokers",
}


def _twice(of: Step, field: str) -> Step:
    """The step, with the first entry of an array twice."""
    return Step(of.api_key, of.version, of.tree | {field: [of.tree[field][0]] * 2}, of.listener, of.connection)


def _creating(**topic: Any) -> Step:
    tree: Tree = {"name": "~t9", "num_partitions": 1, "replication_factor": 1} | topic
    return step(ApiKey.CREATE_TOPICS, 5, topics=[tree], timeout_ms=10_000)


def _assigned(*rows: tuple[int, list[int]]) -> Tree:
    return {
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [{"partition_index": index, "broker_ids": ids} for index, ids in rows],
    }


def _growing(count: int, assignments: list[list[int]] | None = None, name: str = "~t1") -> Step:
    rows = None if assignments is None else [{"broker_ids": ids} for ids in assignments]
    topic = {"name": name, "count": count, "assignments": rows}
    return step(ApiKey.CREATE_PARTITIONS, 2, topics=[topic], timeout_ms=10_000)


TOPIC_ERRORS: Final = (
    _creating(num_partitions=0),
    _creating(num_partitions=-2),
    _creating(replication_factor=2),
    _creating(replication_factor=0),
    _creating(**_assigned((0, [1]), (2, [1]))),
    _creating(**_assigned((0, [1, 1]))),
    _creating(**_assigned((0, [7]))),
    _creating(**_assigned((0, []))),
    _creating(configs=[{"name": "retention.ms", "value": "x"}]),
    _creating(configs=[{"name": "retention.ms", "value": None}]),
    _creating(name="a b"),
    _creating(name="~t1"),
    _twice(_creating(), "topics"),
    _growing(1),
    _growing(2),
    _growing(0),
    _growing(4, [[1]]),
    _growing(3, [[7]]),
    _growing(3, [[]]),
    _growing(3, name="~missing"),
    _twice(_growing(3), "topics"),
    step(ApiKey.DELETE_TOPICS, 6, topics=[{"name": None, "topic_id": {"uuid": "unknown"}}], timeout_ms=10_000),
    step(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "~t1", "topic_id": ref("topic id")}], timeout_ms=10_000),
    step(ApiKey.DELETE_TOPICS, 4, topic_names=["~missing"], timeout_ms=10_000),
    metadata("a b"),
    step(ApiKey.METADATA, 12, topics=[{"name": None, "topic_id": {"uuid": "unknown"}}]),
    step(ApiKey.METADATA, 10, topics=[{"name": "", "topic_id": {"uuid": "unknown"}}]),
    deleting_records(100),
    deleting_records(0, 9),
    step(
        ApiKey.DELETE_RECORDS,
        1,
        topics=[{"name": "~t2", "partitions": [{"partition_index": 0, "offset": 0}]}],
        timeout_ms=10_000,
    ),
    step(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        topics=[{"name": "a b"}, {"name": "~missing"}],
        response_partition_limit=9,
        cursor=None,
    ),
    step(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        topics=[{"name": "~t1"}],
        response_partition_limit=9,
        cursor={"topic_name": "~t1", "partition_index": -1},
    ),
)
RECORD_ERRORS: Final = (
    creating("~t4", 1, max_message_bytes="100"),
    creating("~t5", 1, message_timestamp_before_max_ms="1000"),
    producing({"values": ["x" * 200]}, name="~t4", number=3),
    producing({"values": ["a"]}, name="~t5", number=4),
    producing({"values": ["a"], "key": None}, name="~t2", number=2),
    producing({"values": ["a"]}, name="__consumer_offsets", number=9),
    producing({"values": ["a"], "compression": 4}, 3),
    producing({"values": ["a"], "compression": 4}, 7),
    fetching(0, 9),
    fetching(0, 10),
    producing({"values": ["a"], "fault": "checksum"}),
    producing({"values": ["a"], "log_append_time": 1}),
    producing({"values": ["a"], "control": True}),
    producing({"values": ["a"]}, acks=2),
    producing({"values": ["a"], "transactional": True, "producer": 123456, "epoch": 0, "sequence": 0}),
    producing({"values": ["a"]}, 13, number=77),
    producing({"values": ["a"]}, partition=9),
    producing({"values": ["a"]}, acks=0),
    producing({"values": ["a"]}, acks=0, partition=9),
)


def _latest_of_epoch(current_leader_epoch: int) -> Step:
    row = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": current_leader_epoch}
    return Step(2, 6, list_offsets(-1).tree | {"topics": [{"name": "~t1", "partitions": [row]}]})


FETCH_ERRORS: Final = (
    producing({"values": ["a", "b"]}),
    fetching(100),
    fetching(-1),
    fetching(0, current_leader_epoch=7),
    fetching(0, current_leader_epoch=-2),
    fetching(0, partition=9),
    list_offsets(-1, partition=9),
    list_offsets(-3, 6),
    Step(
        2,
        6,
        list_offsets(-1).tree
        | {
            "topics": [
                {"name": "~t1", "partitions": [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": 7}]}
            ]
        },
    ),
    Step(
        2,
        6,
        list_offsets(-1).tree
        | {
            "topics": [
                {"name": "~t1", "partitions": [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": -2}]}
            ]
        },
    ),
    epoch_end(0, 7),
    epoch_end(0, -2),
    epoch_end(9),
    continuing(1, session=77),
    fetching(0, epoch=0),
    continuing(5),
    fetching(0, 13, epoch=1, session=ref("session")),
    fetching(0, 13, epoch=0),
    continuing(1, session=ref("session", 2)),
    fetching(0, 13),
    deleting("~t1", 1),
    fetching(0, 13),
    creating("~t1", 2),
    continuing(1, 13, session=ref("session", 2)),
    fetching(0, 12, epoch=0),
)
GROUP_ERRORS: Final = (
    joining(session_timeout_ms=1),
    joining(group_id=""),
    joining(protocols=[]),
    joining(protocol_type=""),
    joining("~nobody"),
    joining(),
    joining(M1),
    joining("", protocol_type="other"),
    joining("~nobody"),
    committing(M1, 1),
    syncing(M1, 7),
    syncing("~nobody"),
    Step(14, 5, syncing(M1).tree | {"protocol_name": "other"}),
    syncing(M1),
    beating(M1, 7),
    beating("~nobody"),
    committing(M1, 7),
    committing("~nobody", 1),
    committing(),
    committing(M1, 1, committed_metadata="x" * 5000),
    committing(M1, 1, version=10, number=77),
    committing(M1, 1, partition_index=9),
    committing(group=""),
    DELETING_GROUP,
    DELETING_OFFSETS,
    joining("", 1),
    joining(ref("member", 2), 1),
    beating(M1),
    committing(M1, 1),
    syncing(M1),
    leaving("~nobody"),
    leaving(ref("member", 2)),
    step(ApiKey.OFFSET_DELETE, 0, group_id="~missing", topics=[]),
    step(ApiKey.OFFSET_DELETE, 0, group_id="", topics=[{"name": "~t1", "partitions": [{"partition_index": 0}]}]),
    step(
        ApiKey.OFFSET_DELETE, 0, group_id="~g1", topics=[{"name": "~missing", "partitions": [{"partition_index": 0}]}]
    ),
    step(ApiKey.DELETE_GROUPS, 2, groups_names=["~missing", ""]),
    step(ApiKey.DESCRIBE_GROUPS, 6, groups=["~missing", ""]),
    step(ApiKey.FIND_COORDINATOR, 2, key_type=9, key="~g1"),
)
STATIC_ERRORS: Final = (
    joining("", instance="~i1"),
    syncing(M1, instance="~i1"),
    joining("", instance="~i1"),
    joining(M1, instance="~i1"),
    syncing(M1, instance="~i1"),
    beating(M1, instance="~i1"),
    leaving(M1, instance="~i1"),
    Step(8, 7, committing(M1, 1, 7).tree | {"group_instance_id": "~i1"}),
    beating("~nobody", instance="~i2"),
)
CONSUMER_ERRORS: Final = (
    consumer_beat("~m1", 1),
    consumer_beat("~m1", 0, server_assignor="nonsense"),
    consumer_beat("~m1", 0, subscribed_topic_regex="["),
    consumer_beat("~m1", 0, rebalance_timeout_ms=-1),
    consumer_beat("~m1", 0, subscribed_topic_names=None),
    consumer_beat("~m1", 0, topic_partitions=[{"topic_id": ref("topic id"), "partitions": [0]}]),
    consumer_beat("~m1", 0, group=""),
    consumer_beat("", 0),
    consumer_beat("~m1", 0, instance_id=""),
    consumer_beat("~m1", 0),
    consumer_beat("~m1", 7),
    consumer_beat("~m9", 1),
    consumer_beat("~m1", -2),
    consumer_beat("~m3", 0, instance_id="~i1"),
    consumer_beat("~m4", 0, instance_id="~i1"),
    consumer_beat("~m4", 1, instance_id="~i1"),
    committing("~m1", 0, 9),
    committing("~m1", 7, 9),
    committing("~m9", 1, 9),
    committing("~m1", 1, 8),
    fetching_offsets(9, member="~m1", epoch=0),
    fetching_offsets(9, member="~m9", epoch=1),
    fetching_offsets(10),
    DELETING_GROUP,
    DELETING_OFFSETS,
    DESCRIBING_GROUP,
    step(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=["~missing", ""]),
    consumer_beat("~m1", -1),
    consumer_beat("~m1", -1),
)


def _committing_in_transaction(topic: str, text: str) -> Step:
    row = {"partition_index": 0, "committed_offset": 1, "committed_metadata": text}
    return Step(28, 3, committing_in_transaction().tree | {"topics": [{"name": topic, "partitions": [row]}]})


def _marking(producer_epoch: int, coordinator_epoch: int) -> Step:
    marker = {
        "producer_id": P1,
        "producer_epoch": producer_epoch,
        "transaction_result": True,
        "topics": [{"name": "~t1", "partition_indexes": [0]}],
        "coordinator_epoch": coordinator_epoch,
    }
    return step(ApiKey.WRITE_TXN_MARKERS, 1, markers=[marker])


def _updating(level: int, kind: int) -> Step:
    update = {"feature": "group.version", "max_version_level": level, "upgrade_type": kind}
    return step(ApiKey.UPDATE_FEATURES, 1, timeout_ms=10_000, feature_updates=[update], validate_only=True)


MEMBERS_IN_TRANSACTIONS: Final = (
    joining("", instance="~i1"),
    syncing(M1, instance="~i1"),
    init_producer(),
    adding_group(),
    committing_in_transaction(0, 3, "~nobody", 1),
    committing_in_transaction(0, 3, M1, 7),
    committing_in_transaction(0, 3, M1, 1),
    Step(28, 3, committing_in_transaction(0, 3, "~nobody", 1).tree | {"group_instance_id": "~i1"}),
    _committing_in_transaction("~t1", "x" * 5000),
    _committing_in_transaction("~missing", ""),
    fetching_offsets(),
    ending(),
    fetching_offsets(),
)
OTHER_PROTOCOL: Final = (
    joining("", version=3, protocol_type="other"),
    committing(M1, 1),
    DELETING_OFFSETS,
    leaving(M1),
    DELETING_OFFSETS,
)
ZSTD_TOPIC: Final = (
    creating("~t6", 1, compression_type="zstd"),
    producing({"values": ["a"]}, name="~t6", number=3),
    *(
        step(
            ApiKey.FETCH,
            version,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=LARGE,
            session_epoch=-1,
            topics=[
                {
                    "topic": "~t6",
                    "topic_id": ref("topic id", 3),
                    "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000_000}],
                }
            ],
        )
        for version in (4, 9, 10, 13)
    ),
)
TRANSACTION_ERRORS: Final = (
    init_producer("", 4),
    init_producer(timeout_ms=900_001),
    init_producer(timeout_ms=0),
    init_producer(producer=123456, epoch=0),
    init_producer(),
    init_producer(producer=123456, epoch=0),
    init_producer(producer=P1, epoch=9),
    init_producer(producer=P1, epoch=-1),
    adding(9),
    adding(9, 1),
    adding(0, 3, (0, 9)),
    Step(24, 3, adding().tree | {"v3_and_below_producer_id": 123456}),
    Step(24, 3, adding().tree | {"v3_and_below_transactional_id": "~x9"}),
    Step(24, 3, adding().tree | {"v3_and_below_transactional_id": ""}),
    adding(0, 4, verify=True),
    adding(0, 5, verify=True),
    adding_group(9),
    adding_group(9, 1),
    Step(25, 3, adding_group().tree | {"producer_id": 123456}),
    Step(25, 3, adding_group().tree | {"transactional_id": ""}),
    ending(),
    ending(9),
    ending(9, 1),
    ending(0, 5),
    Step(26, 3, ending().tree | {"producer_id": 123456}),
    Step(26, 3, ending().tree | {"transactional_id": ""}),
    in_transaction(0, 0, 9),
    in_transaction(0, 0, 11),
    in_transaction(0, 9, 9),
    committing_in_transaction(),
    committing_in_transaction(9),
    committing_in_transaction(0, 4),
    committing_in_transaction(9, 5),
    committing_in_transaction(0, 3, "~nobody", 3),
    committing_in_transaction(0, 3, "", 3),
    adding_group(),
    Step(
        28,
        3,
        committing_in_transaction().tree
        | {
            "topics": [
                {
                    "name": "~missing",
                    "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}],
                }
            ]
        },
    ),
    Step(
        28,
        3,
        committing_in_transaction().tree
        | {
            "topics": [
                {
                    "name": "~t1",
                    "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": "x" * 5000}],
                }
            ]
        },
    ),
    committing_in_transaction(),
    fetching_offsets(),
    adding(),
    in_transaction(0),
    step(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=["", "~missing"]),
    step(ApiKey.LIST_TRANSACTIONS, 2, state_filters=[], producer_id_filters=[], transactional_id_pattern="["),
    step(
        ApiKey.WRITE_TXN_MARKERS,
        1,
        markers=[
            {
                "producer_id": P1,
                "producer_epoch": 0,
                "transaction_result": True,
                "topics": [{"name": "~t1", "partition_indexes": [0]}],
                "coordinator_epoch": 5,
            }
        ],
    ),
    step(
        ApiKey.WRITE_TXN_MARKERS,
        1,
        markers=[
            {
                "producer_id": P1,
                "producer_epoch": 0,
                "transaction_result": True,
                "topics": [{"name": "~t1", "partition_indexes": [0]}],
                "coordinator_epoch": 4,
            }
        ],
    ),
    step(
        ApiKey.WRITE_TXN_MARKERS,
        1,
        markers=[
            {
                "producer_id": P1,
                "producer_epoch": -1,
                "transaction_result": True,
                "topics": [{"name": "~t1", "partition_indexes": [0]}],
                "coordinator_epoch": 5,
            }
        ],
    ),
    init_producer(version=1),
    init_producer(version=1),
    ending(0, 1),
    step(
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        topics=[{"name": "a b", "partition_indexes": [0]}, {"name": "~missing", "partition_indexes": [0]}],
    ),
)
CONFIG_ERRORS: Final = (
    replacing(A_TOPIC, "~missing", retention_ms="1"),
    replacing(A_TOPIC, "~t1", retention_ms="x"),
    replacing(0, "~t1", retention_ms="1"),
    replacing(A_BROKER, "x", log_cleaner_threads="1"),
    _twice(replacing(A_TOPIC, "~t1", retention_ms="1"), "resources"),
    altering(A_TOPIC, "~missing", "retention.ms", "1"),
    altering(A_TOPIC, "~t1", "retention.ms", "x"),
    altering(A_TOPIC, "~t1", "retention.ms", "1", 9),
    altering(A_TOPIC, "~t1", "retention.ms", "1", 2),
    altering(A_TOPIC, "~t1", "retention.ms", None),
    _twice(altering(A_TOPIC, "~t1", "retention.ms", "1"), "resources"),
    describing(A_TOPIC, "~missing", None),
    describing(A_TOPIC, "a b", None),
    describing(77, "x", None),
    describing(A_GROUP, "", None),
    step(ApiKey.LIST_CONFIG_RESOURCES, 1, resource_types=[77]),
    electing(7, 0),
    electing(0, 0),
    reassigning([1], change=False),
    reassigning([7]),
    reassigning(None),
    quota([("user", "~u1")], "nonsense", 1.0),
    _twice(scram("~u1"), "upsertions"),
    step(
        ApiKey.UPDATE_FEATURES,
        1,
        timeout_ms=10_000,
        feature_updates=[{"feature": "group.version", "max_version_level": 77, "upgrade_type": 1}],
        validate_only=True,
    ),
    step(
        ApiKey.UPDATE_FEATURES,
        1,
        timeout_ms=10_000,
        feature_updates=[{"feature": "group.version", "max_version_level": 0, "upgrade_type": 1}],
        validate_only=True,
    ),
    step(
        ApiKey.UPDATE_FEATURES,
        1,
        timeout_ms=10_000,
        feature_updates=[{"feature": "group.version", "max_version_level": 1, "upgrade_type": 9}],
        validate_only=True,
    ),
    step(ApiKey.DESCRIBE_CLUSTER, 1, endpoint_type=2),
    step(ApiKey.DESCRIBE_CLUSTER, 1, endpoint_type=9),
    step(ApiKey.DESCRIBE_CLUSTER, 0),
)
_LISTENERS: Final = [{"name": "PLAINTEXT", "host": "127.0.0.1", "port": 9, "security_protocol": 0}]


def _registering(broker_id: int = 77, **fields: Any) -> Step:
    tree: Tree = {
        "broker_id": broker_id,
        "cluster_id": ref("cluster"),
        "incarnation_id": {"uuid": "unknown"},
        "listeners": _LISTENERS,
        "features": [{"name": "metadata.version", "min_supported_version": 7, "max_supported_version": 30}],
        "rack": None,
        "log_dirs": [{"uuid": "unknown"}],
        "previous_broker_epoch": -1,
    }
    return on_controller(step(ApiKey.BROKER_REGISTRATION, 4, **(tree | fields)))


def _changing_isr(epoch: int, **fields: Any) -> Step:
    row: Tree = {
        "partition_index": 0,
        "leader_epoch": 0,
        "new_isr": [1],
        "new_isr_with_epochs": [{"broker_id": 1, "broker_epoch": -1}],
        "partition_epoch": 0,
    }
    return on_controller(
        step(
            ApiKey.ALTER_PARTITION,
            3,
            broker_id=1,
            broker_epoch=epoch,
            topics=[{"topic_id": ref("topic id"), "partitions": [row | fields]}],
        )
    )


_VOTER: Final[Tree] = {"cluster_id": None, "voter_id": 7, "voter_directory_id": {"uuid": "unknown"}}
_ADDING_VOTER: Final = step(
    ApiKey.ADD_RAFT_VOTER,
    0,
    timeout_ms=1000,
    listeners=[{"name": "CONTROLLER", "host": "127.0.0.1", "port": 1}],
    **_VOTER,
)
_REMOVING_VOTER: Final = step(ApiKey.REMOVE_RAFT_VOTER, 0, **_VOTER)
CONTROLLER_ERRORS: Final = (
    step(ApiKey.DESCRIBE_CLUSTER, 1, endpoint_type=1),
    _registering(cluster_id="other"),
    _registering(listeners=[]),
    _registering(features=[]),
    _registering(log_dirs=[]),
    _registering(1),
    _changing_isr(-5),
    on_controller(
        step(ApiKey.BROKER_HEARTBEAT, 1, broker_id=77, broker_epoch=1, current_metadata_offset=1, want_fence=True)
    ),
    on_controller(
        step(ApiKey.BROKER_HEARTBEAT, 1, broker_id=1, broker_epoch=-5, current_metadata_offset=1, want_fence=False)
    ),
    on_controller(step(ApiKey.ALLOCATE_PRODUCER_IDS, 0, broker_id=1, broker_epoch=-5)),
    on_controller(step(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, broker_id=1, broker_epoch=-5, directories=[])),
    on_controller(step(ApiKey.UNREGISTER_BROKER, 0, broker_id=77)),
    on_controller(_ADDING_VOTER),
    on_controller(_REMOVING_VOTER),
    _ADDING_VOTER,
    _REMOVING_VOTER,
    on_controller(step(ApiKey.DESCRIBE_CLUSTER, 1, endpoint_type=1)),
    on_controller(step(ApiKey.DESCRIBE_CLUSTER, 1, endpoint_type=9)),
    on_controller(_creating(num_partitions=0)),
    on_controller(_twice(_creating(), "topics")),
    on_controller(_growing(1)),
    on_controller(electing(7, 0)),
    on_controller(electing(0, 0)),
    on_controller(reassigning([7])),
    on_controller(reassigning(None)),
    on_controller(altering(A_TOPIC, "~t1", "retention.ms", "x")),
    on_controller(replacing(A_TOPIC, "~t1", retention_ms="x")),
    on_controller(step(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")),
    on_controller(step(ApiKey.API_VERSIONS, 3, client_software_name="a b", client_software_version="1")),
)

# --- Where there are ACLs


def _only_others(kind: int, name: str) -> Step:
    """An ACL that lets somebody else do everything: for those who ask, nothing is left."""
    return acl("User:~u1", 2, 3, kind, name)


_A_TRANSACTIONAL_ID, _THE_CLUSTER = 5, 4
_OPERATIONS_LEFT: Final = (7, 9)
"""To alter the cluster, which the asker needs, and to act as a part of it, which the node needs: they are one user."""
_KEEPING_RIGHTS: Final = step(
    ApiKey.CREATE_ACLS,
    3,
    creations=[
        acl("User:ANONYMOUS", operation, 3, _THE_CLUSTER, "kafka-cluster").tree["creations"][0]
        for operation in _OPERATIONS_LEFT
    ],
)
DENIED_NAMES: Final = (
    init_producer(),
    committing(),
    _only_others(2, "~t1"),
    _only_others(3, "~g1"),
    _only_others(_A_TRANSACTIONAL_ID, "~x1"),
    *(each for story in (CLASSIC_GROUP[:14], CONSUMER_GROUP[:3]) for each in story),
    metadata("~t1"),
    producing({"values": ["a"]}),
    producing({"values": ["a"]}, 13),
    in_transaction(0),
    fetching(0),
    fetching(0, 13),
    list_offsets(-1),
    epoch_end(0),
    deleting_records(0),
    creating("~t1"),
    deleting("~t1", 1),
    _growing(3),
    init_producer(),
    adding(),
    adding(0, 4),
    adding_group(),
    committing_in_transaction(),
    ending(),
    DESCRIBING_TRANSACTION,
    DESCRIBING_PRODUCERS,
    LISTING_TRANSACTIONS,
    DELETING_OFFSETS,
    DELETING_GROUP,
    DESCRIBING_CONSUMERS,
    LISTING_GROUPS,
    describing(A_TOPIC, "~t1", None),
    describing(A_GROUP, "~g1", None),
    altering(A_TOPIC, "~t1", "retention.ms", "1"),
    altering(A_GROUP, "~g1", "consumer.session.timeout.ms", "45000"),
    replacing(A_TOPIC, "~t1", retention_ms="1"),
    replacing(A_GROUP, "~g1"),
    step(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=[{"name": "~t1"}], response_partition_limit=9, cursor=None),
    step(ApiKey.DESCRIBE_LOG_DIRS, 4, topics=[{"topic": "~t1", "partitions": [0]}]),
    step(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["~g1"]),
    step(ApiKey.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=["~x1"]),
)
DENIED_TOPICS: Final = (
    committing(),
    _only_others(2, "~t1"),
    committing(),
    committing(version=10),
    fetching_offsets(),
    fetching_offsets(10),
    DELETING_OFFSETS,
    init_producer(),
    adding(),
    adding_group(),
    committing_in_transaction(),
    consumer_beat("~m1", 0),
    consumer_beat("~m1", 1),
    DESCRIBING_CONSUMERS,
    in_transaction(0),
    electing(0, 0),
)
DENIED_CLUSTER: Final = (
    _KEEPING_RIGHTS,
    creating("~t9"),
    init_producer(None),
    step(ApiKey.METADATA, 9, topics=[{"name": "~t8"}], allow_auto_topic_creation=True),
    adding(0, 4),
    describing(A_BROKER, "1", ["num.partitions"]),
    altering(A_BROKER, "1", "log.cleaner.threads", "1", validate=True),
    replacing(A_BROKER, "1", True),
    step(ApiKey.LIST_CONFIG_RESOURCES, 1, resource_types=[2]),
    step(ApiKey.WRITE_TXN_MARKERS, 1, markers=[]),
    quota([("user", "~u1")], "producer_byte_rate", 1000.0, validate=True),
    step(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=[], strict=False),
    step(ApiKey.DESCRIBE_CLUSTER, 1, include_cluster_authorized_operations=True, endpoint_type=1),
    *(
        on_controller(each)
        for each in (
            creating("~t9"),
            describing(A_BROKER, "1", ["num.partitions"]),
            altering(A_BROKER, "1", "log.cleaner.threads", "1", validate=True),
            step(ApiKey.BROKER_HEARTBEAT, 1, broker_id=77, broker_epoch=1, current_metadata_offset=1, want_fence=True),
            step(ApiKey.ALLOCATE_PRODUCER_IDS, 0, broker_id=77, broker_epoch=1),
            step(ApiKey.ALTER_PARTITION, 3, broker_id=77, broker_epoch=1, topics=[]),
            step(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, broker_id=1, broker_epoch=-5, directories=[]),
        )
    ),
    _registering(),
)

_PLAIN: Final = (
    TOPIC_ERRORS,
    RECORD_ERRORS,
    FETCH_ERRORS,
    GROUP_ERRORS,
    STATIC_ERRORS,
    CONSUMER_ERRORS,
    TRANSACTION_ERRORS,
    MEMBERS_IN_TRANSACTIONS,
    OTHER_PROTOCOL,
    ZSTD_TOPIC,
    CONFIG_ERRORS,
    CONTROLLER_ERRORS,
)
_RIGHTS: Final = (
    DENIED_NAMES,
    DENIED_TOPICS,
    DENIED_CLUSTER,
    ABORTED,
    ACLS,
    (acl(), without_acls(), acl("User:*", 2, 2)),
)
ERRORS: Final[Mapping[str, tuple[tuple[Step, ...], ...]]] = {
    PLAIN: _PLAIN,
    RIGHTS: _RIGHTS,
    GROUPS: (*SHARE_ERRORS, *STREAMS_ERRORS, *QUORUM_ERRORS),
}
"""Stories of errors, by scene."""


def directed_errors(scene: str) -> list[Sequence]:
    """Return the stories as they are written, and once with each request in each version."""
    return [
        Sequence(f"s{number:05d}", (*TOPICS_STORY, *steps))
        for number, steps in enumerate(
            [steps for story in ERRORS[scene] for steps in (story, *on_every_version(story))], 50_000
        )
    ]
