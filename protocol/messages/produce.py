"""Appending record batches to partitions."""

from __future__ import annotations

from ..schema import Message, Struct, field


class ProduceRequest(Message, api_key=0, versions="3-13", flexible="9+", listeners="broker"):
    """The request appends one record batch per partition.

    v3 brings transactions and record batch v2 (KIP-98); v7 allows zstd (KIP-110); v9 is flexible; v11 may be
    answered with TRANSACTION_ABORTABLE, v12 adds the partitions to the transaction (KIP-890); v13 names topics by
    id (KIP-516).
    """

    transactional_id: str | None = field("string", "3+", nullable="3+", default=None)
    acks: int = field("int16")
    timeout_ms: int = field("int32")
    topic_data: list[TopicProduceData] = field("[]struct")


class TopicProduceData(Struct):
    name: str = field("string", "0-12", ignorable=True, map_key=True)
    topic_id: bytes = field("uuid", "13+", ignorable=True, map_key=True)
    partition_data: list[PartitionProduceData] = field("[]struct")


class PartitionProduceData(Struct):
    index: int = field("int32")
    records: bytes | memoryview | None = field("records", nullable="0+")


class ProduceResponse(Message, api_key=0, versions="3-13", flexible="9+"):
    """The offset that each batch got, or why it was refused.

    v5 adds the log start offset; v8 which records were at fault (KIP-467); v10 the current leader, so that a client
    need not ask for metadata (KIP-951); v13 topic ids (KIP-516).
    """

    responses: list[TopicProduceResponse] = field("[]struct")
    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = field("[]struct", "10+", tag=0, tagged="10+")


class TopicProduceResponse(Struct):
    name: str = field("string", "0-12", ignorable=True, map_key=True)
    topic_id: bytes = field("uuid", "13+", ignorable=True, map_key=True)
    partition_responses: list[PartitionProduceResponse] = field("[]struct")


class PartitionProduceResponse(Struct):
    index: int = field("int32")
    error_code: int = field("int16")
    base_offset: int = field("int64")
    log_append_time_ms: int = field("int64", "2+", default=-1, ignorable=True)
    log_start_offset: int = field("int64", "5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = field("[]struct", "8+", ignorable=True)
    error_message: str | None = field("string", "8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field("struct", "10+", tag=0, tagged="10+")


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = field("int32", "8+")
    batch_index_error_message: str | None = field("string", "8+", nullable="8+", default=None)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field("int32", "10+", default=-1)
    leader_epoch: int = field("int32", "10+", default=-1)


class NodeEndpoint(Struct):
    node_id: int = field("int32", "10+", map_key=True)
    host: str = field("string", "10+")
    port: int = field("int32", "10+")
    rack: str | None = field("string", "10+", nullable="10+", default=None)
