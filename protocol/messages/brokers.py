"""Messages by which brokers and controllers tell the active controller of themselves (KIP-631)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class BrokerRegistrationRequest(Message, api_key=62, versions="0-4", flexible="0+", listeners="controller"):
    """A broker registers with the controller, and gets its epoch.

    v1 served the move away from ZooKeeper (KIP-866), v2 adds log directories (KIP-858), v3 the previous epoch
    (KIP-966), v4 lets a feature begin at version 0.
    """

    broker_id: int = field("int32")
    cluster_id: str = field("string")
    incarnation_id: bytes = field("uuid")
    listeners: list[Listener] = field("[]struct")
    features: list[Feature] = field("[]struct")
    rack: str | None = field("string", nullable="0+")
    is_migrating_zk_broker: bool = field("bool", "1+")
    log_dirs: list[bytes] = field("[]uuid", "2+", ignorable=True)
    previous_broker_epoch: int = field("int64", "3+", default=-1, ignorable=True)


class Listener(Struct):
    name: str = field("string", map_key=True)
    host: str = field("string")
    port: int = field("uint16")
    security_protocol: int = field("int16")


class Feature(Struct):
    name: str = field("string", map_key=True)
    min_supported_version: int = field("int16")
    max_supported_version: int = field("int16")


class BrokerRegistrationResponse(Message, api_key=62, versions="0-4", flexible="0+"):
    """The broker's epoch."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    broker_epoch: int = field("int64", default=-1)


class BrokerHeartbeatRequest(Message, api_key=63, versions="0-2", flexible="0+", listeners="controller"):
    """A broker shows that it is alive, and wants to be fenced, unfenced or shut down.

    v1 adds log directories that failed (KIP-858), v2 cordoned ones (KIP-1066).
    """

    broker_id: int = field("int32")
    broker_epoch: int = field("int64", default=-1)
    current_metadata_offset: int = field("int64")
    want_fence: bool = field("bool")
    want_shut_down: bool = field("bool")
    offline_log_dirs: list[bytes] = field("[]uuid", "1+", tag=0, tagged="1+")
    cordoned_log_dirs: list[bytes] | None = field("[]uuid", "2+", nullable="2+", default=None, tag=1, tagged="2+")


class BrokerHeartbeatResponse(Message, api_key=63, versions="0-2", flexible="0+"):
    """The response says what the controller lets the broker do."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    is_caught_up: bool = field("bool")
    is_fenced: bool = field("bool", default=True)
    should_shut_down: bool = field("bool")


class UnregisterBrokerRequest(Message, api_key=64, versions="0", flexible="0+", listeners="broker controller"):
    """The request removes a broker's registration."""

    broker_id: int = field("int32")


class UnregisterBrokerResponse(Message, api_key=64, versions="0", flexible="0+"):
    """The response says whether the registration was removed."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")


class UnregisterControllerRequest(Message, api_key=94, versions="0", flexible="0+", listeners="broker controller"):
    """The request removes a controller's registration; from metadata.version 33 (4.4-IV2) on."""

    controller_id: int = field("int32")


class UnregisterControllerResponse(Message, api_key=94, versions="0", flexible="0+"):
    """The response says whether the registration was removed."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")


class ControllerRegistrationRequest(Message, api_key=70, versions="0", flexible="0+", listeners="controller"):
    """A controller registers with the active one, with endpoints and features (KIP-919)."""

    controller_id: int = field("int32")
    incarnation_id: bytes = field("uuid")
    zk_migration_ready: bool = field("bool")
    listeners: list[Listener] = field("[]struct")
    features: list[Feature] = field("[]struct")


class ControllerRegistrationResponse(Message, api_key=70, versions="0", flexible="0+"):
    """The response says whether the controller was registered."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")


class AllocateProducerIdsRequest(Message, api_key=67, versions="0", flexible="0+", listeners="controller"):
    """A broker asks for a block of producer ids (KIP-730)."""

    broker_id: int = field("int32")
    broker_epoch: int = field("int64", default=-1)


class AllocateProducerIdsResponse(Message, api_key=67, versions="0", flexible="0+"):
    """The first id of the block, and its length."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    producer_id_start: int = field("int64")
    producer_id_len: int = field("int32")


class AlterPartitionRequest(Message, api_key=56, versions="2-3", flexible="0+", listeners="controller"):
    """A leader proposes new in-sync replicas (KIP-497).

    v2 names topics by id (KIP-841), v3 sends broker epochs along (KIP-903).
    """

    broker_id: int = field("int32")
    broker_epoch: int = field("int64", default=-1)
    topics: list[AlterPartitionRequestTopicData] = field("[]struct")


class AlterPartitionRequestTopicData(Struct):
    topic_id: bytes = field("uuid", "2+", ignorable=True)
    partitions: list[AlterPartitionRequestPartitionData] = field("[]struct")


class AlterPartitionRequestPartitionData(Struct):
    partition_index: int = field("int32")
    leader_epoch: int = field("int32")
    new_isr: list[int] = field("[]int32", "0-2")
    new_isr_with_epochs: list[BrokerState] = field("[]struct", "3+")
    leader_recovery_state: int = field("int8", "1+")
    partition_epoch: int = field("int32")


class BrokerState(Struct):
    broker_id: int = field("int32", "3+")
    broker_epoch: int = field("int64", "3+", default=-1)


class AlterPartitionResponse(Message, api_key=56, versions="2-3", flexible="0+"):
    """The partition's state after the change."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    topics: list[AlterPartitionResponseTopicData] = field("[]struct")


class AlterPartitionResponseTopicData(Struct):
    topic_id: bytes = field("uuid", "2+", ignorable=True)
    partitions: list[AlterPartitionResponsePartitionData] = field("[]struct")


class AlterPartitionResponsePartitionData(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    leader_id: int = field("int32")
    leader_epoch: int = field("int32")
    isr: list[int] = field("[]int32")
    leader_recovery_state: int = field("int8", "1+", ignorable=True)
    partition_epoch: int = field("int32")


class UpdateFeaturesRequest(Message, api_key=57, versions="0-2", flexible="0+", listeners="broker controller"):
    """Moves finalized features to other levels (KIP-584).

    v1 can be a dry run (KIP-778), v2 is all or nothing.
    """

    timeout_ms: int = field("int32", default=60000)
    feature_updates: list[FeatureUpdateKey] = field("[]struct")
    validate_only: bool = field("bool", "1+")


class FeatureUpdateKey(Struct):
    feature: str = field("string", map_key=True)
    max_version_level: int = field("int16")
    allow_downgrade: bool = field("bool", "0")
    upgrade_type: int = field("int8", "1+", default=1)


class UpdateFeaturesResponse(Message, api_key=57, versions="0-2", flexible="0+"):
    """The outcome, up to v1 for each feature."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")
    results: list[UpdatableFeatureResult] = field("[]struct", "0-1", ignorable=True)


class UpdatableFeatureResult(Struct):
    feature: str = field("string", map_key=True)
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+")


class EnvelopeRequest(Message, api_key=58, versions="0", flexible="0+", listeners="controller"):
    """A request that a broker forwards to the controller, with the principal it came from (KIP-590)."""

    request_data: bytes = field("bytes")
    request_principal: bytes | None = field("bytes", nullable="0+")
    client_host_address: bytes = field("bytes")


class EnvelopeResponse(Message, api_key=58, versions="0", flexible="0+"):
    """The response to the forwarded request."""

    response_data: bytes | None = field("bytes", nullable="0+", default=None)
    error_code: int = field("int16")
