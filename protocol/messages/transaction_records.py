"""Records of `__transaction_state`."""

from __future__ import annotations

from ..schema import Message, Struct, field


class TransactionLogKey(Message, api_key=0, versions="0", flexible="none"):
    """The transactional id."""

    transactional_id: str = field("string", "0")


class TransactionLogValue(Message, api_key=0, versions="0-1", flexible="1+"):
    """The state of a transactional id.

    v1 is flexible (KIP-915) and carries what the second transaction protocol needs (KIP-890).
    """

    producer_id: int = field("int64")
    previous_producer_id: int = field("int64", "1+", default=-1, tag=0, tagged="1+")
    next_producer_id: int = field("int64", "1+", default=-1, tag=1, tagged="1+")
    producer_epoch: int = field("int16")
    next_producer_epoch: int = field("int16", "1+", default=-1, tag=3, tagged="1+")
    transaction_timeout_ms: int = field("int32")
    transaction_status: int = field("int8")
    transaction_partitions: list[PartitionsSchema] | None = field("[]struct", nullable="0+")
    transaction_last_update_timestamp_ms: int = field("int64")
    transaction_start_timestamp_ms: int = field("int64")
    client_transaction_version: int = field("int16", "1+", tag=2, tagged="1+")


class PartitionsSchema(Struct):
    topic: str = field("string")
    partition_ids: list[int] = field("[]int32")
