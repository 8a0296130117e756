"""API keys, and where the messages of each API are declared.

A family's module is imported at the first use of one of its types, so that a broker does not load what it does not
serve. Which of these APIs a broker serves is the table in `pykbroker.server.node.handlers`, not this one.

Two deviations of Kafka's ApiVersions from the declarations belong to the server: Produce is advertised from version 0
on, because librdkafka looks for it, and refused below version 3; versions marked as unstable are not advertised.
"""

from __future__ import annotations

import importlib
from enum import IntEnum
from functools import cache
from typing import Final

from .schema import Message, StructType


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94


def request_type(api_key: int) -> type[Message]:
    """The class of an API's requests; raises KeyError for a key that Kafka does not have."""
    return _message_type(api_key, "Request")


def response_type(api_key: int) -> type[Message]:
    """The class of an API's responses; raises KeyError for a key that Kafka does not have."""
    return _message_type(api_key, "Response")


def api_name(api_key: int) -> str:
    """Kafka's name of an API (`JoinGroup`), or the bare number of an unknown one."""
    return _APIS[api_key][0] if api_key in _APIS else str(api_key)


@cache
def _message_type(api_key: int, kind: str) -> type[Message]:
    name, family = _APIS[api_key]
    found = getattr(importlib.import_module(f".messages.{family}", __package__), name + kind)
    assert isinstance(found, StructType)
    assert issubclass(found, Message)
    return found


_APIS: Final[dict[int, tuple[str, str]]] = {
    ApiKey.PRODUCE: ("Produce", "produce"),
    ApiKey.FETCH: ("Fetch", "fetch"),
    ApiKey.LIST_OFFSETS: ("ListOffsets", "offsets"),
    ApiKey.METADATA: ("Metadata", "metadata"),
    ApiKey.OFFSET_COMMIT: ("OffsetCommit", "group_offsets"),
    ApiKey.OFFSET_FETCH: ("OffsetFetch", "group_offsets"),
    ApiKey.FIND_COORDINATOR: ("FindCoordinator", "groups"),
    ApiKey.JOIN_GROUP: ("JoinGroup", "groups"),
    ApiKey.HEARTBEAT: ("Heartbeat", "groups"),
    ApiKey.LEAVE_GROUP: ("LeaveGroup", "groups"),
    ApiKey.SYNC_GROUP: ("SyncGroup", "groups"),
    ApiKey.DESCRIBE_GROUPS: ("DescribeGroups", "group_admin"),
    ApiKey.LIST_GROUPS: ("ListGroups", "group_admin"),
    ApiKey.SASL_HANDSHAKE: ("SaslHandshake", "sasl"),
    ApiKey.API_VERSIONS: ("ApiVersions", "api_versions"),
    ApiKey.CREATE_TOPICS: ("CreateTopics", "topics"),
    ApiKey.DELETE_TOPICS: ("DeleteTopics", "topics"),
    ApiKey.DELETE_RECORDS: ("DeleteRecords", "offsets"),
    ApiKey.INIT_PRODUCER_ID: ("InitProducerId", "transactions"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ("OffsetForLeaderEpoch", "offsets"),
    ApiKey.ADD_PARTITIONS_TO_TXN: ("AddPartitionsToTxn", "transactions"),
    ApiKey.ADD_OFFSETS_TO_TXN: ("AddOffsetsToTxn", "transactions"),
    ApiKey.END_TXN: ("EndTxn", "transactions"),
    ApiKey.WRITE_TXN_MARKERS: ("WriteTxnMarkers", "transactions"),
    ApiKey.TXN_OFFSET_COMMIT: ("TxnOffsetCommit", "transactions"),
    ApiKey.DESCRIBE_ACLS: ("DescribeAcls", "acls"),
    ApiKey.CREATE_ACLS: ("CreateAcls", "acls"),
    ApiKey.DELETE_ACLS: ("DeleteAcls", "acls"),
    ApiKey.DESCRIBE_CONFIGS: ("DescribeConfigs", "configs"),
    ApiKey.ALTER_CONFIGS: ("AlterConfigs", "configs"),
    ApiKey.ALTER_REPLICA_LOG_DIRS: ("AlterReplicaLogDirs", "log_dirs"),
    ApiKey.DESCRIBE_LOG_DIRS: ("DescribeLogDirs", "log_dirs"),
    ApiKey.SASL_AUTHENTICATE: ("SaslAuthenticate", "sasl"),
    ApiKey.CREATE_PARTITIONS: ("CreatePartitions", "topics"),
    ApiKey.CREATE_DELEGATION_TOKEN: ("CreateDelegationToken", "delegation_tokens"),
    ApiKey.RENEW_DELEGATION_TOKEN: ("RenewDelegationToken", "delegation_tokens"),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ("ExpireDelegationToken", "delegation_tokens"),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: ("DescribeDelegationToken", "delegation_tokens"),
    ApiKey.DELETE_GROUPS: ("DeleteGroups", "group_admin"),
    ApiKey.ELECT_LEADERS: ("ElectLeaders", "reassignments"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ("IncrementalAlterConfigs", "configs"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ("AlterPartitionReassignments", "reassignments"),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ("ListPartitionReassignments", "reassignments"),
    ApiKey.OFFSET_DELETE: ("OffsetDelete", "group_offsets"),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: ("DescribeClientQuotas", "quotas"),
    ApiKey.ALTER_CLIENT_QUOTAS: ("AlterClientQuotas", "quotas"),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: ("DescribeUserScramCredentials", "scram_credentials"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ("AlterUserScramCredentials", "scram_credentials"),
    ApiKey.VOTE: ("Vote", "quorum"),
    ApiKey.BEGIN_QUORUM_EPOCH: ("BeginQuorumEpoch", "quorum"),
    ApiKey.END_QUORUM_EPOCH: ("EndQuorumEpoch", "quorum"),
    ApiKey.DESCRIBE_QUORUM: ("DescribeQuorum", "quorum"),
    ApiKey.ALTER_PARTITION: ("AlterPartition", "brokers"),
    ApiKey.UPDATE_FEATURES: ("UpdateFeatures", "brokers"),
    ApiKey.ENVELOPE: ("Envelope", "brokers"),
    ApiKey.FETCH_SNAPSHOT: ("FetchSnapshot", "quorum"),
    ApiKey.DESCRIBE_CLUSTER: ("DescribeCluster", "metadata"),
    ApiKey.DESCRIBE_PRODUCERS: ("DescribeProducers", "transaction_admin"),
    ApiKey.BROKER_REGISTRATION: ("BrokerRegistration", "brokers"),
    ApiKey.BROKER_HEARTBEAT: ("BrokerHeartbeat", "brokers"),
    ApiKey.UNREGISTER_BROKER: ("UnregisterBroker", "brokers"),
    ApiKey.DESCRIBE_TRANSACTIONS: ("DescribeTransactions", "transaction_admin"),
    ApiKey.LIST_TRANSACTIONS: ("ListTransactions", "transaction_admin"),
    ApiKey.ALLOCATE_PRODUCER_IDS: ("AllocateProducerIds", "brokers"),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ("ConsumerGroupHeartbeat", "consumer_groups"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ("ConsumerGroupDescribe", "consumer_groups"),
    ApiKey.CONTROLLER_REGISTRATION: ("ControllerRegistration", "brokers"),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: ("GetTelemetrySubscriptions", "telemetry"),
    ApiKey.PUSH_TELEMETRY: ("PushTelemetry", "telemetry"),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: ("AssignReplicasToDirs", "log_dirs"),
    ApiKey.LIST_CONFIG_RESOURCES: ("ListConfigResources", "configs"),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ("DescribeTopicPartitions", "metadata"),
    ApiKey.SHARE_GROUP_HEARTBEAT: ("ShareGroupHeartbeat", "share_groups"),
    ApiKey.SHARE_GROUP_DESCRIBE: ("ShareGroupDescribe", "share_groups"),
    ApiKey.SHARE_FETCH: ("ShareFetch", "share_groups"),
    ApiKey.SHARE_ACKNOWLEDGE: ("ShareAcknowledge", "share_groups"),
    ApiKey.ADD_RAFT_VOTER: ("AddRaftVoter", "voters"),
    ApiKey.REMOVE_RAFT_VOTER: ("RemoveRaftVoter", "voters"),
    ApiKey.UPDATE_RAFT_VOTER: ("UpdateRaftVoter", "voters"),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: ("InitializeShareGroupState", "share_state"),
    ApiKey.READ_SHARE_GROUP_STATE: ("ReadShareGroupState", "share_state"),
    ApiKey.WRITE_SHARE_GROUP_STATE: ("WriteShareGroupState", "share_state"),
    ApiKey.DELETE_SHARE_GROUP_STATE: ("DeleteShareGroupState", "share_state"),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ("ReadShareGroupStateSummary", "share_state"),
    ApiKey.STREAMS_GROUP_HEARTBEAT: ("StreamsGroupHeartbeat", "streams_groups"),
    ApiKey.STREAMS_GROUP_DESCRIBE: ("StreamsGroupDescribe", "streams_groups"),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: ("DescribeShareGroupOffsets", "share_groups"),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: ("AlterShareGroupOffsets", "share_groups"),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: ("DeleteShareGroupOffsets", "share_groups"),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: (
        "StreamsGroupTopologyDescriptionUpdate",
        "streams_topology_descriptions",
    ),
    ApiKey.UNREGISTER_CONTROLLER: ("UnregisterController", "brokers"),
}
