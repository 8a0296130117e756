"""The values that a field of a request is drawn from, by its name: some mean something to a sequence, some never do.

An entry that stands there more than once is drawn more often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pykbroker.protocol.schema import Field

from .record_batches import FAULTS, T0
from .sequences import hexed, ref

LARGE, HUGE = 2**31 - 1, 2**63 - 1
TOPICS: Final = ("~t1", "~t1", "~t1", "~t1", "~t2", "~t2", "~t3", "~missing")
ODD_TOPICS: Final = (*TOPICS, *TOPICS, "", "~a b", ".", "x" * 250, "__consumer_offsets", "__transaction_state")
GROUPS: Final = ("~g1", "~g1", "~g1", "~g2", "~missing", "")
TRANSACTIONS: Final = ("~x1", "~x1", "~x1", "~x2", "~missing", "")
MEMBERS: Final = (ref("member"), ref("member"), ref("member"), ref("member", 2), "~nobody", "")
INSTANCES: Final = (None, None, None, "~i1", "~i2", "")
PARTITIONS: Final = (0, 0, 0, 1, 1, 2, 7, -1, LARGE)
TOPIC_IDS: Final = (
    ref("topic id"),
    ref("topic id"),
    ref("topic id"),
    ref("topic id", 2),
    {"uuid": "unknown"},
    {"uuid": "none"},
)
OFFSETS: Final = (0, 0, 1, 2, 3, 4, 5, 100, -1, -2, HUGE)
EPOCHS: Final = (-1, -1, -1, 0, 0, 1, 7, -2, LARGE)
TIMEOUTS: Final = (10_000, 10_000, 30_000, 5_000)
PRODUCERS: Final = (ref("producer"), ref("producer"), ref("producer"), ref("producer", 2), -1, 123456, 0)
NODES: Final = (1, 1, 1, 2, 7, -1)
CONFIG_NAMES: Final = (
    "retention.ms",
    "cleanup.policy",
    "cleanup.policy",
    "min.insync.replicas",
    "max.message.bytes",
    "message.timestamp.type",
    "compression.type",
    "segment.bytes",
    "leader.replication.throttled.replicas",
    "retention.bytes",
    "unclean.leader.election.enable",
    "consumer.session.timeout.ms",
    "no.such.key",
    "",
)
CONFIG_VALUES: Final = (
    "1",
    "1",
    "100",
    "-1",
    "-2",
    "delete",
    "compact",
    "compact,delete",
    "producer",
    "LogAppendTime",
    "true",
    "lz4",
    "1048576",
    "45000",
    "0:1",
    "",
    "x",
    None,
)

_STRINGS: Final[Mapping[str, Sequence[Any]]] = {
    "group_id": GROUPS,
    "group_ids": GROUPS,
    "groups_names": GROUPS,
    "groups": GROUPS,
    "transactional_id": TRANSACTIONS,
    "v3_and_below_transactional_id": TRANSACTIONS,
    "transactional_ids": TRANSACTIONS,
    "transactional_id_pattern": (None, None, "", "~x.*", "~x1", "[", ".*x2"),
    "member_id": MEMBERS,
    "group_instance_id": INSTANCES,
    "instance_id": INSTANCES,
    "topic": TOPICS,
    "topic_name": (*ODD_TOPICS, *("__cluster_metadata",) * 4),
    "topic_names": (*TOPICS, *TOPICS, "", "~a b"),
    "resource_name": ("~t1", "~t1", "~t2", "~missing", "1", "1", "2", "", "~g1", "x", "a b"),
    "resource_name_filter": (None, None, "~t1", "~t2", "~g1", "", "*"),
    "coordinator_keys": ("~g1", "~x1", ""),
    "key": ("~g1", "~x1", ""),
    "protocol_type": ("consumer", "consumer", "consumer", "other", "", None),
    "protocol_name": ("range", "range", "sticky", "", None),
    "client_software_name": ("differential", "", "a b", "-", "x" * 40),
    "client_software_version": ("1.0", "", "!", "1"),
    "states_filter": ("Stable", "Empty", "stable", "Dead", "nonsense", "Assigning", "PreparingRebalance"),
    "types_filter": ("classic", "consumer", "share", "Classic", "nonsense"),
    "state_filters": ("Ongoing", "CompleteCommit", "CompleteAbort", "Empty", "nonsense", ""),
    "mechanism": ("PLAIN", "SCRAM-SHA-256", ""),
    "committed_metadata": ("", "m", None, "x" * 5000),
    "rack": (None, "r"),
    "rack_id": (None, "", "r"),
    "reason": (None, "a reason"),
    "subscribed_topic_names": ("~t1", "~t1", "~t2", "~missing", "", "a b"),
    "subscribed_topic_regex": (None, None, "~t.*", "[", ""),
    "server_assignor": (None, None, None, "uniform", "range", "nonsense", ""),
    "entity_type": ("user", "client-id", "ip", "nonsense", ""),
    "entity_name": ("~u1", "~u1", "~u2", "127.0.0.9", None, "", "~not.an.ip"),
    "match": ("~u1", "127.0.0.9", None, ""),
    "feature": ("metadata.version", "group.version", "transaction.version", "nonsense", "kraft.version", ""),
    "principal": ("User:~u1", "User:~u1", "User:*", "nonsense", "", "Group:~x"),
    "principal_filter": (None, None, "User:~u1", "nonsense", ""),
    "host": ("*", "*", "127.0.0.9", "", "10.0.0.0/8"),
    "host_filter": (None, None, "*", "127.0.0.9", ""),
    "cluster_id": (None, ref("cluster"), "other", ""),
    "principal_type": ("User", "Group", ""),
    "principal_name": ("~u1", "ANONYMOUS", ""),
    "owner_principal_type": (None, "User", ""),
    "owner_principal_name": (None, "~u1", ""),
    "path": (ref("directory"), ref("directory"), "/nowhere", "relative", ""),
    "configuration_keys": (*CONFIG_NAMES, "log.retention.ms", "num.partitions", "log.dirs"),
}
_NUMBERS: Final[Mapping[str, Sequence[Any]]] = {
    "partition_index": PARTITIONS,
    "partition_indexes": PARTITIONS,
    "partition": PARTITIONS,
    "partitions": PARTITIONS,
    "index": PARTITIONS,
    "topic_id": TOPIC_IDS,
    "timeout_ms": TIMEOUTS,
    "rebalance_timeout_ms": (30_000, 30_000, 300_000, 45_000),
    "session_timeout_ms": (30_000, 30_000, 45_000, 5_999, 6_000, 1_800_000, 1_800_001, -1),
    "max_wait_ms": (0, 0, 1),
    "min_bytes": (0, 0, 1, -1),
    "max_bytes": (LARGE, LARGE, 1_000_000, 1, 0, 100),
    "partition_max_bytes": (1_000_000, 1_000_000, LARGE, 1, 0, 100),
    "session_id": (0, 0, 0, ref("session"), ref("session"), ref("session", 2), 77),
    "session_epoch": (-1, -1, -1, 0, 0, 1, 1, 2, 3, -2),
    "fetch_offset": OFFSETS,
    "last_fetched_epoch": (-1, -1, -1, 0, 1),
    "current_leader_epoch": EPOCHS,
    "leader_epoch": EPOCHS,
    "log_start_offset": (-1, -1, 0, 2),
    "isolation_level": (0, 0, 1, 1, 2),
    "replica_id": (-1, -1, -1, -1, -2, 1, 7),
    "replica_epoch": (-1,),
    "timestamp": (-1, -1, -2, -2, -3, -4, -5, -6, -7, T0, T0 + 1, T0 + 1000, 0, HUGE),
    "acks": (-1, -1, -1, 1, 1, 0, 2, -2),
    "committed_offset": (0, 1, 5, 5, -1, HUGE),
    "committed_leader_epoch": (-1, -1, 0, 1),
    "generation_id_or_member_epoch": (-1, -1, 0, 1, 1, 1, 2, 3, -2),
    "generation_id": (-1, -1, 0, 1, 1, 1, 2, 3),
    "member_epoch": (0, 0, 1, 1, 1, 2, 3, -1, -2, -3),
    "retention_time_ms": (-1, 1_000),
    "key_type": (0, 0, 1, 1, 2, 3, -1),
    "num_partitions": (1, 1, 2, 2, -1, 0, -2, 3),
    "replication_factor": (1, 1, 1, -1, 0, 2, -2),
    "broker_ids": (1, 1, 1, 2, -1),
    "replicas": (1, 1, 1, 2, -1),
    "count": (2, 3, 4, 1, 0, -1),
    "offset": OFFSETS,
    "producer_id": PRODUCERS,
    "v3_and_below_producer_id": PRODUCERS,
    "producer_id_filters": (ref("producer"), ref("producer", 2), 123456, -1),
    "producer_epoch": (0, 0, 0, 1, 1, 2, -1, 32767),
    "v3_and_below_producer_epoch": (0, 0, 1, 2, -1),
    "transaction_timeout_ms": (60_000, 60_000, 900_000, 900_001, 0, -1),
    "coordinator_epoch": (0, 0, 1, -1),
    "transaction_version": (0, 1, 2, 7),
    "duration_filter": (-1, -1, 0, 100_000_000),
    "resource_type": (2, 2, 2, 4, 8, 16, 32, 0, 3, 77),
    "resource_types": (2, 4, 8, 16, 32, 0, 77),
    "resource_type_filter": (1, 2, 3, 4, 5, 6, 0, 77),
    "resource_pattern_type": (3, 3, 4, 1, 2, 0, 9),
    "pattern_type_filter": (3, 3, 4, 1, 2, 0, 9),
    "operation": (2, 3, 4, 5, 8, 1, 0, 77),
    "permission_type": (3, 3, 2, 1, 0, 9),
    "config_operation": (0, 0, 1, 2, 3, 9, -1),
    "election_type": (0, 1, 2, -1),
    "match_type": (0, 0, 1, 2, 3, -1),
    "iterations": (4096, 4096, 4095, 16384, 16385, 0, -1),
    "response_partition_limit": (2000, 2000, 1, 2, 0, -1),
    "endpoint_type": (1, 1, 1, 2, 0, 3),
    "max_version_level": (0, 1, 2, 30, 31, -1, 99),
    "upgrade_type": (1, 1, 2, 3, 0, 4),
    "replica_directory_id": ({"uuid": "none"},),
    "value": (1000.0, 1.0, 0.0, -1.0, 0.5, 1e18),
    "max_lifetime_ms": (-1, 1000, 0, HUGE),
    "renew_period_ms": (-1, 1000, -2),
    "expiry_time_period_ms": (-1, 1000, -2),
}
_PER_API: Final[Mapping[tuple[str, str], Sequence[Any]]] = {
    ("MetadataRequest", "name"): ODD_TOPICS,
    ("JoinGroupRequest", "name"): ("range", "range", "sticky", ""),
    ("AlterConfigsRequest", "name"): CONFIG_NAMES,
    ("AlterConfigsRequest", "value"): CONFIG_VALUES,
    ("IncrementalAlterConfigsRequest", "name"): CONFIG_NAMES,
    ("IncrementalAlterConfigsRequest", "value"): CONFIG_VALUES,
    ("CreateTopicsRequest", "value"): CONFIG_VALUES,
    ("AlterUserScramCredentialsRequest", "name"): ("~u1", "~u1", "~u2", ""),
    ("DescribeUserScramCredentialsRequest", "name"): ("~u1", "~u1", "~u2", "", "~missing"),
    ("AlterUserScramCredentialsRequest", "mechanism"): (1, 1, 2, 0, 3),
    ("AlterClientQuotasRequest", "key"): (
        "producer_byte_rate",
        "consumer_byte_rate",
        "controller_mutation_rate",
        "connection_creation_rate",
        "request_percentage",
        "nonsense",
        "",
    ),
}
_STRUCTS: Final[Mapping[str, Sequence[Any]]] = {"CreatableTopicConfig.name": CONFIG_NAMES}
_BYTES: Final = ("", "some bytes", hexed(b"\x00\x01"))
_KINDS: Final[Mapping[str, Sequence[Any]]] = {
    "bool": (False, True),
    "int8": (0, 1, 2, -1, 127),
    "int16": (0, 1, -1, 32767),
    "uint16": (0, 9092, 65535),
    "int32": (0, 1, 2, -1, LARGE),
    "uint32": (0, 1),
    "int64": (0, 1, -1, HUGE),
    "float64": (0.0, 1.5),
    "string": ("", "~t1", "x"),
    "uuid": ({"uuid": "none"}, {"uuid": "unknown"}, ref("directory id")),
    "bytes": _BYTES,
}

GOOD_BATCHES: Final[tuple[Any, ...]] = (
    {"batches": [{"values": ["a", "b"]}]},
    {"batches": [{"values": ["a"], "compression": 1}]},
    {"batches": [{"values": ["a", "b", "c"], "compression": 3, "at": 1000}]},
    {"batches": [{"values": ["a", None], "at": 500}]},
    {"batches": [{"values": ["a"], "compression": 4}]},
    {"batches": [{"values": ["a"], "compression": 2}]},
    {"batches": [{"values": ["x" * 300]}]},
)
_FAULTY_BATCHES: Final[tuple[Any, ...]] = (
    *({"batches": [{"values": ["a", "b"], "fault": fault}]} for fault in FAULTS),
    {"batches": [{"values": []}]},
    {"batches": [{"values": ["a"]}, {"values": ["b"]}]},
    {"batches": []},
    None,
    {"batches": [{"values": ["a"], "key": None}]},
    {"batches": [{"values": ["a"], "magic": 0}]},
    {"batches": [{"values": ["a", "b"], "magic": 1}]},
    {"batches": [{"values": ["a"], "control": True}]},
    {"batches": [{"values": ["a"], "log_append_time": 1}]},
    {"batches": [{"values": ["a"], "base_offset": 5}]},
    {"batches": [{"values": ["a"], "leader_epoch": 3}]},
    {"batches": [{"values": ["a"], "transactional": True}]},
    {"batches": [{"values": ["a"], "at": 10**13}]},
)


def _sequenced(**fields: Any) -> dict[str, Any]:
    return {"batches": [{"values": ["a", "b"], "producer": ref("producer"), "epoch": 0, **fields}]}


_SEQUENCED_BATCHES: Final = (
    _sequenced(sequence=0),
    _sequenced(sequence=0),
    _sequenced(sequence=2),
    _sequenced(sequence=4),
    _sequenced(sequence=7),
    _sequenced(sequence=0, epoch=1),
    _sequenced(sequence=0, epoch=-1),
    _sequenced(sequence=-1),
    _sequenced(sequence=0, transactional=True),
    _sequenced(sequence=0, transactional=True),
    _sequenced(sequence=2, transactional=True),
    _sequenced(sequence=0, transactional=True, epoch=1),
    _sequenced(sequence=0, producer=ref("producer", 2)),
)
RECORDS: Final = (*GOOD_BATCHES, *GOOD_BATCHES, *_FAULTY_BATCHES, *_SEQUENCED_BATCHES)


def values_of(request: str, struct: str, field: Field) -> Sequence[Any]:
    """Return what one element of the field is drawn from. request, struct: the names of the classes that hold it."""
    if field.element == "records":
        return RECORDS
    if (request, field.name) in _PER_API:
        return _PER_API[request, field.name]
    if f"{struct}.{field.name}" in _STRUCTS:
        return _STRUCTS[f"{struct}.{field.name}"]
    if field.element == "string":
        return _STRINGS.get(field.name, TOPICS if field.name == "name" else _KINDS["string"])
    if field.name in _NUMBERS and field.element != "bytes":
        return _NUMBERS[field.name]
    if field.name == "hmac":
        return (ref("hmac"), ref("hmac"), "nonsense", "")
    return _KINDS[field.element]
