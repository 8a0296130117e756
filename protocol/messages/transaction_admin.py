"""Looking at producers and transactions (KIP-664)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class DescribeProducersRequest(Message, api_key=61, versions="0", flexible="0+", listeners="broker"):
    """The request asks which producers have written to partitions of late."""

    topics: list[TopicRequest] = field("[]struct")


class TopicRequest(Struct):
    name: str = field("string", map_key=True)
    partition_indexes: list[int] = field("[]int32")


class DescribeProducersResponse(Message, api_key=61, versions="0", flexible="0+"):
    """Producers with their epoch, last sequence, and the start of an open transaction."""

    throttle_time_ms: int = field("int32")
    topics: list[TopicResponse] = field("[]struct")


class TopicResponse(Struct):
    name: str = field("string")
    partitions: list[PartitionResponse] = field("[]struct")


class PartitionResponse(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable="0+", default=None)
    active_producers: list[ProducerState] = field("[]struct")


class ProducerState(Struct):
    producer_id: int = field("int64")
    producer_epoch: int = field("int32")
    last_sequence: int = field("int32", default=-1)
    last_timestamp: int = field("int64", default=-1)
    coordinator_epoch: int = field("int32")
    current_txn_start_offset: int = field("int64", default=-1)


class DescribeTransactionsRequest(Message, api_key=65, versions="0", flexible="0+", listeners="broker"):
    """The request asks for transactions by transactional id."""

    transactional_ids: list[str] = field("[]string")


class DescribeTransactionsResponse(Message, api_key=65, versions="0", flexible="0+"):
    """State, producer, timeout and partitions of each transaction."""

    throttle_time_ms: int = field("int32")
    transaction_states: list[DescribeTransactionsResponseTransactionState] = field("[]struct")


class DescribeTransactionsResponseTransactionState(Struct):
    error_code: int = field("int16")
    transactional_id: str = field("string")
    transaction_state: str = field("string")
    transaction_timeout_ms: int = field("int32")
    transaction_start_time_ms: int = field("int64")
    producer_id: int = field("int64")
    producer_epoch: int = field("int16")
    topics: list[TopicData] = field("[]struct")


class TopicData(Struct):
    topic: str = field("string", map_key=True)
    partitions: list[int] = field("[]int32")


class ListTransactionsRequest(Message, api_key=66, versions="0-2", flexible="0+", listeners="broker"):
    """Lists transactions by state and producer.

    v1 filters by duration (KIP-994), v2 by a regular expression (KIP-1152).
    """

    state_filters: list[str] = field("[]string")
    producer_id_filters: list[int] = field("[]int64")
    duration_filter: int = field("int64", "1+", default=-1)
    transactional_id_pattern: str | None = field("string", "2+", nullable="2+", default=None)


class ListTransactionsResponse(Message, api_key=66, versions="0-2", flexible="0+"):
    """Transactions of this coordinator."""

    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    unknown_state_filters: list[str] = field("[]string")
    transaction_states: list[ListTransactionsResponseTransactionState] = field("[]struct")


class ListTransactionsResponseTransactionState(Struct):
    transactional_id: str = field("string")
    producer_id: int = field("int64")
    transaction_state: str = field("string")
