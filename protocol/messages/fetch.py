"""Reading record batches, by consumers and by following replicas."""

from __future__ import annotations

from ..schema import Message, RecordsRegion, Struct, field


class FetchRequest(Message, api_key=1, versions="4-18", flexible="12+", listeners="broker controller"):
    """The request asks for the record batches behind an offset, and waits until there are enough of them.

    v4 brings isolation levels (KIP-98); v5 the follower's log start; v7 sessions (KIP-227); v9 leader epochs
    (KIP-320); v11 racks (KIP-392); v12 the last fetched epoch (KIP-595); v13 topic ids (KIP-516); v15 replica
    epochs (KIP-903); v17 directory ids (KIP-853); v18 the follower's high watermark (KIP-1166).
    """

    cluster_id: str | None = field("string", "12+", nullable="12+", default=None, tag=0, tagged="12+", ignorable=True)
    replica_id: int = field("int32", "0-14", default=-1)
    replica_state: ReplicaState = field("struct", "15+", tag=1, tagged="15+")
    max_wait_ms: int = field("int32")
    min_bytes: int = field("int32")
    max_bytes: int = field("int32", "3+", default=0x7FFFFFFF, ignorable=True)
    isolation_level: int = field("int8", "4+", ignorable=True)
    session_id: int = field("int32", "7+", ignorable=True)
    session_epoch: int = field("int32", "7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = field("[]struct")
    forgotten_topics_data: list[ForgottenTopic] = field("[]struct", "7+")
    rack_id: str = field("string", "11+", ignorable=True)


class ReplicaState(Struct):
    replica_id: int = field("int32", "15+", default=-1)
    replica_epoch: int = field("int64", "15+", default=-1)


class FetchTopic(Struct):
    topic: str = field("string", "0-12", ignorable=True)
    topic_id: bytes = field("uuid", "13+", ignorable=True)
    partitions: list[FetchPartition] = field("[]struct")


class FetchPartition(Struct):
    partition: int = field("int32")
    current_leader_epoch: int = field("int32", "9+", default=-1, ignorable=True)
    fetch_offset: int = field("int64")
    last_fetched_epoch: int = field("int32", "12+", default=-1)
    log_start_offset: int = field("int64", "5+", default=-1, ignorable=True)
    partition_max_bytes: int = field("int32")
    replica_directory_id: bytes = field("uuid", "17+", tag=0, tagged="17+", ignorable=True)
    high_watermark: int = field("int64", "18+", default=9223372036854775807, tag=1, tagged="18+", ignorable=True)


class ForgottenTopic(Struct):
    topic: str = field("string", "7-12", ignorable=True)
    topic_id: bytes = field("uuid", "13+", ignorable=True)
    partitions: list[int] = field("[]int32", "7+")


class FetchResponse(Message, api_key=1, versions="4-18", flexible="12+"):
    """Record batches and the state of each partition.

    In a session only partitions with news appear (v7, KIP-227). v11 points to a nearer replica (KIP-392), v12 tells
    a follower where its log diverges (KIP-595), v16 where a moved leader can be reached (KIP-951).
    """

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    error_code: int = field("int16", "7+", ignorable=True)
    session_id: int = field("int32", "7+")
    responses: list[FetchableTopicResponse] = field("[]struct")
    node_endpoints: list[NodeEndpoint] = field("[]struct", "16+", tag=0, tagged="16+")


class FetchableTopicResponse(Struct):
    topic: str = field("string", "0-12", ignorable=True)
    topic_id: bytes = field("uuid", "13+", ignorable=True)
    partitions: list[PartitionData] = field("[]struct")


class PartitionData(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    high_watermark: int = field("int64")
    last_stable_offset: int = field("int64", "4+", default=-1, ignorable=True)
    log_start_offset: int = field("int64", "5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field("struct", "12+", tag=0, tagged="12+")
    current_leader: LeaderIdAndEpoch = field("struct", "12+", tag=1, tagged="12+")
    snapshot_id: SnapshotId = field("struct", "12+", tag=2, tagged="12+")
    aborted_transactions: list[AbortedTransaction] | None = field("[]struct", "4+", nullable="4+", ignorable=True)
    preferred_read_replica: int = field("int32", "11+", default=-1)
    records: bytes | memoryview | RecordsRegion | None = field("records", nullable="0+")


class EpochEndOffset(Struct):
    epoch: int = field("int32", "12+", default=-1)
    end_offset: int = field("int64", "12+", default=-1)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field("int32", "12+", default=-1)
    leader_epoch: int = field("int32", "12+", default=-1)


class SnapshotId(Struct):
    end_offset: int = field("int64", default=-1)
    epoch: int = field("int32", default=-1)


class AbortedTransaction(Struct):
    producer_id: int = field("int64", "4+")
    first_offset: int = field("int64", "4+")


class NodeEndpoint(Struct):
    node_id: int = field("int32", "16+", map_key=True)
    host: str = field("string", "16+")
    port: int = field("int32", "16+")
    rack: str | None = field("string", "16+", nullable="16+", default=None)
