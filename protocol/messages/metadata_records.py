"""Records of the metadata log, `__cluster_metadata`. A record's API key is its type id."""

from __future__ import annotations

from ..schema import Message, Struct, field


class RegisterBrokerRecord(Message, api_key=0, versions="0-4", flexible="0+"):
    """A broker with its endpoints, features and epoch.

    v1 adds controlled shutdown, v2 served the move away from ZooKeeper, v3 adds log directories (KIP-858), v4
    cordoned ones (KIP-1066).
    """

    broker_id: int = field("int32")
    is_migrating_zk_broker: bool = field("bool", "2+")
    incarnation_id: bytes = field("uuid")
    broker_epoch: int = field("int64")
    end_points: list[BrokerEndpoint] = field("[]struct")
    features: list[BrokerFeature] = field("[]struct")
    rack: str | None = field("string", nullable="0+")
    fenced: bool = field("bool", default=True)
    in_controlled_shutdown: bool = field("bool", "1+")
    log_dirs: list[bytes] = field("[]uuid", "3+", tag=0, tagged="3+")
    cordoned_log_dirs: list[bytes] | None = field("[]uuid", "4+", nullable="4+", default=None, tag=1, tagged="4+")


class BrokerEndpoint(Struct):
    name: str = field("string", map_key=True)
    host: str = field("string")
    port: int = field("uint16")
    security_protocol: int = field("int16")


class BrokerFeature(Struct):
    name: str = field("string", map_key=True)
    min_supported_version: int = field("int16")
    max_supported_version: int = field("int16")


class UnregisterBrokerRecord(Message, api_key=1, versions="0", flexible="0+"):
    """A broker is gone for good."""

    broker_id: int = field("int32")
    broker_epoch: int = field("int64")


class UnregisterControllerRecord(Message, api_key=29, versions="0", flexible="0+"):
    """A controller is gone for good; from metadata.version 33 (4.4-IV2) on."""

    controller_id: int = field("int32")


class TopicRecord(Message, api_key=2, versions="0", flexible="0+"):
    """A topic, its name and id."""

    name: str = field("string")
    topic_id: bytes = field("uuid")


class PartitionRecord(Message, api_key=3, versions="0-2", flexible="0+"):
    """A partition with all of its state.

    v1 adds directories (KIP-858), v2 eligible leader replicas (KIP-966).
    """

    partition_id: int = field("int32", default=-1)
    topic_id: bytes = field("uuid")
    replicas: list[int] = field("[]int32")
    isr: list[int] = field("[]int32")
    removing_replicas: list[int] = field("[]int32")
    adding_replicas: list[int] = field("[]int32")
    leader: int = field("int32", default=-1)
    leader_recovery_state: int = field("int8", tag=0, tagged="0+")
    leader_epoch: int = field("int32", default=-1)
    partition_epoch: int = field("int32", default=-1)
    directories: list[bytes] = field("[]uuid", "1+")
    eligible_leader_replicas: list[int] | None = field("[]int32", "2+", nullable="2+", default=None, tag=1, tagged="2+")
    last_known_elr: list[int] | None = field("[]int32", "2+", nullable="2+", default=None, tag=2, tagged="2+")


class ConfigRecord(Message, api_key=4, versions="0", flexible="0+"):
    """One configuration of a resource; null removes it."""

    resource_type: int = field("int8")
    resource_name: str = field("string")
    name: str = field("string")
    value: str | None = field("string", nullable="0+")


class PartitionChangeRecord(Message, api_key=5, versions="0-2", flexible="0+"):
    """The record says what has changed of a partition; the rest stays as it is.

    v1 adds directories (KIP-858), v2 eligible leader replicas (KIP-966).
    """

    partition_id: int = field("int32", default=-1)
    topic_id: bytes = field("uuid")
    isr: list[int] | None = field("[]int32", nullable="0+", default=None, tag=0, tagged="0+")
    leader: int = field("int32", default=-2, tag=1, tagged="0+")
    replicas: list[int] | None = field("[]int32", nullable="0+", default=None, tag=2, tagged="0+")
    removing_replicas: list[int] | None = field("[]int32", nullable="0+", default=None, tag=3, tagged="0+")
    adding_replicas: list[int] | None = field("[]int32", nullable="0+", default=None, tag=4, tagged="0+")
    leader_recovery_state: int = field("int8", default=-1, tag=5, tagged="0+")
    directories: list[bytes] | None = field("[]uuid", "1+", nullable="1+", default=None, tag=8, tagged="1+")
    eligible_leader_replicas: list[int] | None = field("[]int32", "2+", nullable="2+", default=None, tag=6, tagged="2+")
    last_known_elr: list[int] | None = field("[]int32", "2+", nullable="2+", default=None, tag=7, tagged="2+")


class AccessControlEntryRecord(Message, api_key=18, versions="0", flexible="0+"):
    """An access control entry."""

    id: bytes = field("uuid")
    resource_type: int = field("int8")
    resource_name: str = field("string")
    pattern_type: int = field("int8")
    principal: str = field("string")
    host: str = field("string")
    operation: int = field("int8")
    permission_type: int = field("int8")


class FenceBrokerRecord(Message, api_key=7, versions="0", flexible="0+"):
    """A broker is fenced. Superseded by BrokerRegistrationChangeRecord."""

    id: int = field("int32")
    epoch: int = field("int64")


class UnfenceBrokerRecord(Message, api_key=8, versions="0", flexible="0+"):
    """A broker is no longer fenced. Superseded by BrokerRegistrationChangeRecord."""

    id: int = field("int32")
    epoch: int = field("int64")


class RemoveTopicRecord(Message, api_key=9, versions="0", flexible="0+"):
    """A topic is deleted, with all of its partitions."""

    topic_id: bytes = field("uuid")


class DelegationTokenRecord(Message, api_key=10, versions="0", flexible="0+"):
    """A delegation token."""

    owner: str = field("string")
    requester: str = field("string")
    renewers: list[str] = field("[]string")
    issue_timestamp: int = field("int64")
    max_timestamp: int = field("int64")
    expiration_timestamp: int = field("int64")
    token_id: str = field("string")


class UserScramCredentialRecord(Message, api_key=11, versions="0", flexible="0+"):
    """A SCRAM credential of a user."""

    name: str = field("string")
    mechanism: int = field("int8")
    salt: bytes = field("bytes")
    stored_key: bytes = field("bytes")
    server_key: bytes = field("bytes")
    iterations: int = field("int32")


class FeatureLevelRecord(Message, api_key=12, versions="0", flexible="0+"):
    """The level of a feature; `metadata.version` is the first record of a log or snapshot.

    It can never move beyond v0: it must be read before one knows what one can read.
    """

    name: str = field("string")
    feature_level: int = field("int16")


class ClientQuotaRecord(Message, api_key=14, versions="0", flexible="0+"):
    """A quota of an entity."""

    entity: list[EntityData] = field("[]struct")
    key: str = field("string")
    value: float = field("float64")
    remove: bool = field("bool")


class EntityData(Struct):
    entity_type: str = field("string")
    entity_name: str | None = field("string", nullable="0+")


class ProducerIdsRecord(Message, api_key=15, versions="0", flexible="0+"):
    """The record says which producer ids have been handed out to brokers."""

    broker_id: int = field("int32")
    broker_epoch: int = field("int64", default=-1)
    next_producer_id: int = field("int64")


class RemoveAccessControlEntryRecord(Message, api_key=19, versions="0", flexible="0+"):
    """An access control entry is removed."""

    id: bytes = field("uuid")


class BrokerRegistrationChangeRecord(Message, api_key=17, versions="0-3", flexible="0+"):
    """The record says what has changed of a broker's registration: fenced or not, shutting down or not.

    v1 adds controlled shutdown (KIP-841), v2 log directories (KIP-858), v3 cordoned ones (KIP-1066).
    """

    broker_id: int = field("int32")
    broker_epoch: int = field("int64")
    fenced: int = field("int8", tag=0, tagged="0+")
    in_controlled_shutdown: int = field("int8", "1+", tag=1, tagged="1+")
    log_dirs: list[bytes] = field("[]uuid", "2+", tag=2, tagged="2+")
    cordoned_log_dirs: list[bytes] | None = field("[]uuid", "3+", nullable="3+", default=None, tag=3, tagged="3+")


class NoOpRecord(Message, api_key=20, versions="0", flexible="0+"):
    """The record changes nothing. It lets the controller see that its log still moves."""


class ZkMigrationStateRecord(Message, api_key=21, versions="0", flexible="0+"):
    """The record says how far a move away from ZooKeeper has come. Old logs hold it; nothing writes it any more."""

    zk_migration_state: int = field("int8")


class RemoveUserScramCredentialRecord(Message, api_key=22, versions="0", flexible="0+"):
    """A SCRAM credential is removed."""

    name: str = field("string")
    mechanism: int = field("int8")


class BeginTransactionRecord(Message, api_key=23, versions="0", flexible="0+"):
    """The records up to the end or abort apply together (KIP-868)."""

    name: str | None = field("string", nullable="0+", default=None, tag=0, tagged="0+")


class EndTransactionRecord(Message, api_key=24, versions="0", flexible="0+"):
    """The records since the beginning apply now."""


class AbortTransactionRecord(Message, api_key=25, versions="0", flexible="0+"):
    """The records since the beginning are void."""

    reason: str | None = field("string", nullable="0+", default=None, tag=0, tagged="0+")


class RemoveDelegationTokenRecord(Message, api_key=26, versions="0", flexible="0+"):
    """A delegation token is removed."""

    token_id: str = field("string")


class RegisterControllerRecord(Message, api_key=27, versions="0", flexible="0+"):
    """A controller with its endpoints and features."""

    controller_id: int = field("int32")
    incarnation_id: bytes = field("uuid")
    zk_migration_ready: bool = field("bool")
    end_points: list[ControllerEndpoint] = field("[]struct")
    features: list[ControllerFeature] = field("[]struct")


class ControllerEndpoint(Struct):
    name: str = field("string", map_key=True)
    host: str = field("string")
    port: int = field("uint16")
    security_protocol: int = field("int16")


class ControllerFeature(Struct):
    name: str = field("string", map_key=True)
    min_supported_version: int = field("int16")
    max_supported_version: int = field("int16")


class ClearElrRecord(Message, api_key=28, versions="0", flexible="0+"):
    """Eligible leader replicas are forgotten, for one topic or for all of them."""

    topic_name: str = field("string")
