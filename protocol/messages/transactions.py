"""Producer ids and transactions (KIP-98, KIP-890)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class InitProducerIdRequest(
    Message, api_key=22, versions="0-6", flexible="2+", listeners="broker", latest_version_unstable=True
):
    """The request gets a producer id, or the next epoch of one.

    v3 lets a producer resume with the id and epoch it had (KIP-360), v4 may be answered with PRODUCER_FENCED, v5
    with TRANSACTION_ABORTABLE (KIP-890), v6 brings two-phase commit (KIP-939) and is not stable.
    """

    transactional_id: str | None = field("string", nullable="0+")
    transaction_timeout_ms: int = field("int32")
    producer_id: int = field("int64", "3+", default=-1)
    producer_epoch: int = field("int16", "3+", default=-1)
    enable2_pc: bool = field("bool", "6+")
    keep_prepared_txn: bool = field("bool", "6+")


class InitProducerIdResponse(Message, api_key=22, versions="0-6", flexible="2+"):
    """Producer id and epoch; v6 tells of a prepared transaction that is still open (KIP-939)."""

    throttle_time_ms: int = field("int32", ignorable=True)
    error_code: int = field("int16")
    producer_id: int = field("int64", default=-1)
    producer_epoch: int = field("int16")
    ongoing_txn_producer_id: int = field("int64", "6+", default=-1)
    ongoing_txn_producer_epoch: int = field("int16", "6+", default=-1)


class AddPartitionsToTxnRequest(Message, api_key=24, versions="0-5", flexible="3+", listeners="broker"):
    """The request adds partitions to a transaction.

    Clients use up to v3. From v4 on brokers add or verify partitions for several transactions at once (KIP-890).
    """

    transactions: list[AddPartitionsToTxnTransaction] = field("[]struct", "4+")
    v3_and_below_transactional_id: str = field("string", "0-3")
    v3_and_below_producer_id: int = field("int64", "0-3")
    v3_and_below_producer_epoch: int = field("int16", "0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field("[]struct", "0-3")


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = field("string", "4+", map_key=True)
    producer_id: int = field("int64", "4+")
    producer_epoch: int = field("int16", "4+")
    verify_only: bool = field("bool", "4+")
    topics: list[AddPartitionsToTxnTopic] = field("[]struct", "4+")


class AddPartitionsToTxnTopic(Struct):
    name: str = field("string", map_key=True)
    partitions: list[int] = field("[]int32")


class AddPartitionsToTxnResponse(Message, api_key=24, versions="0-5", flexible="3+"):
    """The outcome for each partition, from v4 on by transaction (KIP-890)."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16", "4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = field("[]struct", "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field("[]struct", "0-3")


class AddPartitionsToTxnResult(Struct):
    transactional_id: str = field("string", "4+", map_key=True)
    topic_results: list[AddPartitionsToTxnTopicResult] = field("[]struct", "4+")


class AddPartitionsToTxnTopicResult(Struct):
    name: str = field("string", map_key=True)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field("[]struct")


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = field("int32", map_key=True)
    partition_error_code: int = field("int16")


class AddOffsetsToTxnRequest(Message, api_key=25, versions="0-4", flexible="3+", listeners="broker"):
    """The request adds a group's offsets partition to a transaction."""

    transactional_id: str = field("string")
    producer_id: int = field("int64")
    producer_epoch: int = field("int16")
    group_id: str = field("string")


class AddOffsetsToTxnResponse(Message, api_key=25, versions="0-4", flexible="3+"):
    """The response says whether the offsets partition was added."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")


class EndTxnRequest(Message, api_key=26, versions="0-5", flexible="3+", listeners="broker"):
    """The request commits or aborts a transaction.

    v5 makes the coordinator raise the producer's epoch with every transaction (KIP-890).
    """

    transactional_id: str = field("string")
    producer_id: int = field("int64")
    producer_epoch: int = field("int16")
    committed: bool = field("bool")


class EndTxnResponse(Message, api_key=26, versions="0-5", flexible="3+"):
    """The outcome, from v5 on with the producer id and epoch for the next transaction (KIP-890)."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    producer_id: int = field("int64", "5+", default=-1, ignorable=True)
    producer_epoch: int = field("int16", "5+", default=-1, ignorable=True)


class TxnOffsetCommitRequest(Message, api_key=28, versions="0-6", flexible="3+", listeners="broker"):
    """The request commits a group's offsets as part of a transaction.

    v2 adds leader epochs (KIP-320), v3 the member and generation, to fence zombies (KIP-447), v5 adds the group to
    the transaction (KIP-890), v6 has topic ids in place of names (KIP-1319).
    """

    transactional_id: str = field("string")
    group_id: str = field("string")
    producer_id: int = field("int64")
    producer_epoch: int = field("int16")
    generation_id_or_member_epoch: int = field("int32", "3+", default=-1)
    member_id: str = field("string", "3+")
    group_instance_id: str | None = field("string", "3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field("[]struct")


class TxnOffsetCommitRequestTopic(Struct):
    name: str = field("string", "0-5", ignorable=True)
    topic_id: bytes = field("uuid", "6+", ignorable=True)
    partitions: list[TxnOffsetCommitRequestPartition] = field("[]struct")


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int = field("int32")
    committed_offset: int = field("int64")
    committed_leader_epoch: int = field("int32", "2+", default=-1, ignorable=True)
    committed_metadata: str | None = field("string", nullable="0+")


class TxnOffsetCommitResponse(Message, api_key=28, versions="0-6", flexible="3+"):
    """The outcome for each partition."""

    throttle_time_ms: int = field("int32")
    topics: list[TxnOffsetCommitResponseTopic] = field("[]struct")


class TxnOffsetCommitResponseTopic(Struct):
    name: str = field("string", "0-5", ignorable=True)
    topic_id: bytes = field("uuid", "6+", ignorable=True)
    partitions: list[TxnOffsetCommitResponsePartition] = field("[]struct")


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")


class WriteTxnMarkersRequest(Message, api_key=27, versions="1-2", flexible="1+", listeners="broker"):
    """Sent by transaction coordinators: writes commit or abort markers into partitions.

    v2 adds the transaction version (KIP-1228).
    """

    markers: list[WritableTxnMarker] = field("[]struct")


class WritableTxnMarker(Struct):
    producer_id: int = field("int64")
    producer_epoch: int = field("int16")
    transaction_result: bool = field("bool")
    topics: list[WritableTxnMarkerTopic] = field("[]struct")
    coordinator_epoch: int = field("int32")
    transaction_version: int = field("int8", "2+", ignorable=True)


class WritableTxnMarkerTopic(Struct):
    name: str = field("string")
    partition_indexes: list[int] = field("[]int32")


class WriteTxnMarkersResponse(Message, api_key=27, versions="1-2", flexible="1+"):
    """The outcome for each producer and partition."""

    markers: list[WritableTxnMarkerResult] = field("[]struct")


class WritableTxnMarkerResult(Struct):
    producer_id: int = field("int64")
    topics: list[WritableTxnMarkerTopicResult] = field("[]struct")


class WritableTxnMarkerTopicResult(Struct):
    name: str = field("string")
    partitions: list[WritableTxnMarkerPartitionResult] = field("[]struct")


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
