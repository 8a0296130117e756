"""Snapshots of producers' state, entries of transaction indexes, and records of `__remote_log_metadata` (KIP-405)."""

from __future__ import annotations

from ..schema import Message, Struct, field


class ProducerSnapshot(Message, versions="1", flexible="none"):
    """The file `*.snapshot` beside a segment: every producer's epoch, last batch and open transaction."""

    crc: int = field("uint32", "1")
    producer_entries: list[ProducerEntry] = field("[]struct", "1")


class ProducerEntry(Struct):
    producer_id: int = field("int64", "1")
    epoch: int = field("int16", "1")
    last_sequence: int = field("int32", "1")
    last_offset: int = field("int64", "1")
    offset_delta: int = field("int32", "1")
    timestamp: int = field("int64", "1")
    coordinator_epoch: int = field("int32", "1")
    current_txn_first_offset: int = field("int64", "1")


class AbortedTxn(Message, versions="0", flexible="none"):
    """An entry of a transaction index: a transaction that was aborted. Version 0 stands before it, in 16 bits."""

    producer_id: int = field("int64")
    first_offset: int = field("int64")
    last_offset: int = field("int64")
    last_stable_offset: int = field("int64")


class RemoteLogSegmentMetadataRecord(Message, api_key=0, versions="0", flexible="0+"):
    """A segment that is being copied to remote storage."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = field("struct")
    start_offset: int = field("int64")
    end_offset: int = field("int64")
    broker_id: int = field("int32")
    max_timestamp_ms: int = field("int64")
    event_timestamp_ms: int = field("int64")
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = field("[]struct")
    segment_size_in_bytes: int = field("int32")
    custom_metadata: bytes | None = field("bytes", nullable="0+", default=None)
    remote_log_segment_state: int = field("int8")
    txn_index_empty: bool = field("bool", tag=0, tagged="0+")


class RemoteLogSegmentIdEntry(Struct):
    topic_id_partition: TopicIdPartitionEntry = field("struct")
    id: bytes = field("uuid")


class TopicIdPartitionEntry(Struct):
    name: str = field("string")
    id: bytes = field("uuid")
    partition: int = field("int32")


class SegmentLeaderEpochEntry(Struct):
    leader_epoch: int = field("int32")
    offset: int = field("int64")


class RemoteLogSegmentMetadataUpdateRecord(Message, api_key=1, versions="0", flexible="0+"):
    """The new state of a segment in remote storage."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = field("struct")
    broker_id: int = field("int32")
    event_timestamp_ms: int = field("int64")
    custom_metadata: bytes | None = field("bytes", nullable="0+", default=None)
    remote_log_segment_state: int = field("int8")


class RemotePartitionDeleteMetadataRecord(Message, api_key=2, versions="0", flexible="0+"):
    """The deletion of a partition in remote storage."""

    topic_id_partition: TopicIdPartitionEntry = field("struct")
    broker_id: int = field("int32")
    event_timestamp_ms: int = field("int64")
    remote_partition_delete_state: int = field("int8")


class RemoteLogSegmentMetadataSnapshotRecord(Message, api_key=3, versions="0", flexible="0+"):
    """A segment in remote storage, as snapshots of that metadata hold it."""

    segment_id: bytes = field("uuid")
    start_offset: int = field("int64")
    end_offset: int = field("int64")
    broker_id: int = field("int32")
    max_timestamp_ms: int = field("int64")
    event_timestamp_ms: int = field("int64")
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = field("[]struct")
    segment_size_in_bytes: int = field("int32")
    custom_metadata: bytes | None = field("bytes", nullable="0+", default=None)
    remote_log_segment_state: int = field("int8")
    txn_index_empty: bool = field("bool", tag=0, tagged="0+")
