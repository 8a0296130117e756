"""State of share groups, kept by the share coordinator for partition leaders (KIP-932)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class InitializeShareGroupStateRequest(Message, api_key=83, versions="0", flexible="0+", listeners="broker"):
    """The request creates the state of share partitions."""

    group_id: str = field("string")
    topics: list[InitializeStateData] = field("[]struct")


class InitializeStateData(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[InitializeShareGroupStateRequestPartitionData] = field("[]struct")


class InitializeShareGroupStateRequestPartitionData(Struct):
    partition: int = field("int32")
    state_epoch: int = field("int32")
    start_offset: int = field("int64")


class InitializeShareGroupStateResponse(Message, api_key=83, versions="0", flexible="0+"):
    """The outcome for each partition."""

    results: list[InitializeStateResult] = field("[]struct")


class InitializeStateResult(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[InitializeShareGroupStateResponsePartitionResult] = field("[]struct")


class InitializeShareGroupStateResponsePartitionResult(Struct):
    partition: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)


class ReadShareGroupStateRequest(Message, api_key=84, versions="0", flexible="0+", listeners="broker"):
    """The request reads the state of share partitions."""

    group_id: str = field("string")
    topics: list[ReadStateData] = field("[]struct")


class ReadStateData(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[ReadShareGroupStateRequestPartitionData] = field("[]struct")


class ReadShareGroupStateRequestPartitionData(Struct):
    partition: int = field("int32")
    leader_epoch: int = field("int32")


class ReadShareGroupStateResponse(Message, api_key=84, versions="0", flexible="0+"):
    """The state of each partition, as batches of offsets."""

    results: list[ReadStateResult] = field("[]struct")


class ReadStateResult(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[ReadShareGroupStateResponsePartitionResult] = field("[]struct")


class ReadShareGroupStateResponsePartitionResult(Struct):
    partition: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    state_epoch: int = field("int32")
    start_offset: int = field("int64")
    state_batches: list[StateBatch] = field("[]struct")


class StateBatch(Struct):
    first_offset: int = field("int64")
    last_offset: int = field("int64")
    delivery_state: int = field("int8")
    delivery_count: int = field("int16")


class WriteShareGroupStateRequest(Message, api_key=85, versions="0-1", flexible="0+", listeners="broker"):
    """The request writes changes to the state of share partitions.

    v1 adds how many deliveries are complete (KIP-1226).
    """

    group_id: str = field("string")
    topics: list[WriteStateData] = field("[]struct")


class WriteStateData(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[WriteShareGroupStateRequestPartitionData] = field("[]struct")


class WriteShareGroupStateRequestPartitionData(Struct):
    partition: int = field("int32")
    state_epoch: int = field("int32")
    leader_epoch: int = field("int32")
    start_offset: int = field("int64")
    delivery_complete_count: int = field("int32", "1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = field("[]struct")


class WriteShareGroupStateResponse(Message, api_key=85, versions="0-1", flexible="0+"):
    """The outcome for each partition."""

    results: list[WriteStateResult] = field("[]struct")


class WriteStateResult(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[WriteShareGroupStateResponsePartitionResult] = field("[]struct")


class WriteShareGroupStateResponsePartitionResult(Struct):
    partition: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)


class DeleteShareGroupStateRequest(Message, api_key=86, versions="0", flexible="0+", listeners="broker"):
    """The request deletes the state of share partitions."""

    group_id: str = field("string")
    topics: list[DeleteStateData] = field("[]struct")


class DeleteStateData(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[DeleteShareGroupStateRequestPartitionData] = field("[]struct")


class DeleteShareGroupStateRequestPartitionData(Struct):
    partition: int = field("int32")


class DeleteShareGroupStateResponse(Message, api_key=86, versions="0", flexible="0+"):
    """The outcome for each partition."""

    results: list[DeleteStateResult] = field("[]struct")


class DeleteStateResult(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[DeleteShareGroupStateResponsePartitionResult] = field("[]struct")


class DeleteShareGroupStateResponsePartitionResult(Struct):
    partition: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)


class ReadShareGroupStateSummaryRequest(Message, api_key=87, versions="0-1", flexible="0+", listeners="broker"):
    """The request reads where share partitions begin, without their batches."""

    group_id: str = field("string")
    topics: list[ReadStateSummaryData] = field("[]struct")


class ReadStateSummaryData(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[ReadShareGroupStateSummaryRequestPartitionData] = field("[]struct")


class ReadShareGroupStateSummaryRequestPartitionData(Struct):
    partition: int = field("int32")
    leader_epoch: int = field("int32")


class ReadShareGroupStateSummaryResponse(Message, api_key=87, versions="0-1", flexible="0+"):
    """Epochs and start offsets, from v1 on with the completed deliveries (KIP-1226)."""

    results: list[ReadStateSummaryResult] = field("[]struct")


class ReadStateSummaryResult(Struct):
    topic_id: bytes = field("uuid")
    partitions: list[ReadShareGroupStateSummaryResponsePartitionResult] = field("[]struct")


class ReadShareGroupStateSummaryResponsePartitionResult(Struct):
    partition: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    state_epoch: int = field("int32")
    leader_epoch: int = field("int32")
    start_offset: int = field("int64")
    delivery_complete_count: int = field("int32", "1+", default=-1, ignorable=True)
