"""Consensus among the controllers (KIP-595, KIP-630)."""

from __future__ import annotations

from ..schema import Message, RecordsRegion, Struct, field


class VoteRequest(Message, api_key=52, versions="0-2", flexible="0+", listeners="controller"):
    """A candidate asks for a vote.

    v1 names voters by directory id (KIP-853), v2 adds the pre-vote, a question without consequences (KIP-996).
    """

    cluster_id: str | None = field("string", nullable="0+", default=None)
    voter_id: int = field("int32", "1+", default=-1, ignorable=True)
    topics: list[VoteRequestTopicData] = field("[]struct")


class VoteRequestTopicData(Struct):
    topic_name: str = field("string")
    partitions: list[VoteRequestPartitionData] = field("[]struct")


class VoteRequestPartitionData(Struct):
    partition_index: int = field("int32")
    replica_epoch: int = field("int32")
    replica_id: int = field("int32")
    replica_directory_id: bytes = field("uuid", "1+", ignorable=True)
    voter_directory_id: bytes = field("uuid", "1+", ignorable=True)
    last_offset_epoch: int = field("int32")
    last_offset: int = field("int64")
    pre_vote: bool = field("bool", "2+")


class VoteResponse(Message, api_key=52, versions="0-2", flexible="0+"):
    """The response says whether the vote is granted, and who leads."""

    error_code: int = field("int16")
    topics: list[VoteResponseTopicData] = field("[]struct")
    node_endpoints: list[NodeEndpoint] = field("[]struct", "1+", tag=0, tagged="1+")


class VoteResponseTopicData(Struct):
    topic_name: str = field("string")
    partitions: list[VoteResponsePartitionData] = field("[]struct")


class VoteResponsePartitionData(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    leader_id: int = field("int32")
    leader_epoch: int = field("int32")
    vote_granted: bool = field("bool")


class NodeEndpoint(Struct):
    node_id: int = field("int32", "1+", map_key=True)
    host: str = field("string", "1+")
    port: int = field("uint16", "1+")


class BeginQuorumEpochRequest(Message, api_key=53, versions="0-1", flexible="1+", listeners="controller"):
    """A new leader announces itself to the voters.

    v1 adds directory ids and the leader's endpoints (KIP-853).
    """

    cluster_id: str | None = field("string", nullable="0+", default=None)
    voter_id: int = field("int32", "1+", default=-1, ignorable=True)
    topics: list[BeginQuorumEpochRequestTopicData] = field("[]struct")
    leader_endpoints: list[LeaderEndpoint] = field("[]struct", "1+", ignorable=True)


class BeginQuorumEpochRequestTopicData(Struct):
    topic_name: str = field("string")
    partitions: list[BeginQuorumEpochRequestPartitionData] = field("[]struct")


class BeginQuorumEpochRequestPartitionData(Struct):
    partition_index: int = field("int32")
    voter_directory_id: bytes = field("uuid", "1+", ignorable=True)
    leader_id: int = field("int32")
    leader_epoch: int = field("int32")


class LeaderEndpoint(Struct):
    name: str = field("string", "1+", map_key=True)
    host: str = field("string", "1+")
    port: int = field("uint16", "1+")


class BeginQuorumEpochResponse(Message, api_key=53, versions="0-1", flexible="1+"):
    """Leader and epoch as the voter knows them."""

    error_code: int = field("int16")
    topics: list[BeginQuorumEpochResponseTopicData] = field("[]struct")
    node_endpoints: list[NodeEndpoint] = field("[]struct", "1+", tag=0, tagged="1+")


class BeginQuorumEpochResponseTopicData(Struct):
    topic_name: str = field("string")
    partitions: list[BeginQuorumEpochResponsePartitionData] = field("[]struct")


class BeginQuorumEpochResponsePartitionData(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    leader_id: int = field("int32")
    leader_epoch: int = field("int32")


class EndQuorumEpochRequest(Message, api_key=54, versions="0-1", flexible="1+", listeners="controller"):
    """A leader resigns and names those who should succeed it.

    v1 names them by directory id (KIP-853).
    """

    cluster_id: str | None = field("string", nullable="0+", default=None)
    topics: list[EndQuorumEpochRequestTopicData] = field("[]struct")
    leader_endpoints: list[LeaderEndpoint] = field("[]struct", "1+", ignorable=True)


class EndQuorumEpochRequestTopicData(Struct):
    topic_name: str = field("string")
    partitions: list[EndQuorumEpochRequestPartitionData] = field("[]struct")


class EndQuorumEpochRequestPartitionData(Struct):
    partition_index: int = field("int32")
    leader_id: int = field("int32")
    leader_epoch: int = field("int32")
    preferred_successors: list[int] = field("[]int32", "0", ignorable=True)
    preferred_candidates: list[ReplicaInfo] = field("[]struct", "1+", ignorable=True)


class ReplicaInfo(Struct):
    candidate_id: int = field("int32", "1+")
    candidate_directory_id: bytes = field("uuid", "1+")


class EndQuorumEpochResponse(Message, api_key=54, versions="0-1", flexible="1+"):
    """Leader and epoch as the voter knows them."""

    error_code: int = field("int16")
    topics: list[EndQuorumEpochResponseTopicData] = field("[]struct")
    node_endpoints: list[NodeEndpoint] = field("[]struct", "1+", tag=0, tagged="1+")


class EndQuorumEpochResponseTopicData(Struct):
    topic_name: str = field("string")
    partitions: list[EndQuorumEpochResponsePartitionData] = field("[]struct")


class EndQuorumEpochResponsePartitionData(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    leader_id: int = field("int32")
    leader_epoch: int = field("int32")


class DescribeQuorumRequest(Message, api_key=55, versions="0-2", flexible="0+", listeners="broker controller"):
    """The request asks for the state of the quorum."""

    topics: list[DescribeQuorumRequestTopicData] = field("[]struct")


class DescribeQuorumRequestTopicData(Struct):
    topic_name: str = field("string")
    partitions: list[DescribeQuorumRequestPartitionData] = field("[]struct")


class DescribeQuorumRequestPartitionData(Struct):
    partition_index: int = field("int32")


class DescribeQuorumResponse(Message, api_key=55, versions="0-2", flexible="0+"):
    """Leader, voters and observers with their progress.

    v1 adds times (KIP-836), v2 directory ids and endpoints (KIP-853).
    """

    error_code: int = field("int16")
    error_message: str | None = field("string", "2+", nullable="2+", ignorable=True)
    topics: list[DescribeQuorumResponseTopicData] = field("[]struct")
    nodes: list[Node] = field("[]struct", "2+")


class DescribeQuorumResponseTopicData(Struct):
    topic_name: str = field("string")
    partitions: list[DescribeQuorumResponsePartitionData] = field("[]struct")


class DescribeQuorumResponsePartitionData(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", "2+", nullable="2+", ignorable=True)
    leader_id: int = field("int32")
    leader_epoch: int = field("int32")
    high_watermark: int = field("int64")
    current_voters: list[ReplicaState] = field("[]struct")
    observers: list[ReplicaState] = field("[]struct")


class ReplicaState(Struct):
    replica_id: int = field("int32")
    replica_directory_id: bytes = field("uuid", "2+")
    log_end_offset: int = field("int64")
    last_fetch_timestamp: int = field("int64", "1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = field("int64", "1+", default=-1, ignorable=True)


class Node(Struct):
    node_id: int = field("int32", "2+", map_key=True)
    listeners: list[Listener] = field("[]struct", "2+")


class Listener(Struct):
    name: str = field("string", "2+", map_key=True)
    host: str = field("string", "2+")
    port: int = field("uint16", "2+")


class FetchSnapshotRequest(Message, api_key=59, versions="0-1", flexible="0+", listeners="controller"):
    """The request reads a piece of a snapshot of the metadata log.

    v1 adds the directory id (KIP-853).
    """

    cluster_id: str | None = field("string", nullable="0+", default=None, tag=0, tagged="0+")
    replica_id: int = field("int32", default=-1)
    max_bytes: int = field("int32", default=0x7FFFFFFF)
    topics: list[FetchSnapshotRequestTopicSnapshot] = field("[]struct")


class FetchSnapshotRequestTopicSnapshot(Struct):
    name: str = field("string")
    partitions: list[FetchSnapshotRequestPartitionSnapshot] = field("[]struct")


class FetchSnapshotRequestPartitionSnapshot(Struct):
    partition: int = field("int32")
    current_leader_epoch: int = field("int32")
    snapshot_id: SnapshotId = field("struct")
    position: int = field("int64")
    replica_directory_id: bytes = field("uuid", "1+", tag=0, tagged="1+", ignorable=True)


class SnapshotId(Struct):
    end_offset: int = field("int64")
    epoch: int = field("int32")


class FetchSnapshotResponse(Message, api_key=59, versions="0-1", flexible="0+"):
    """Bytes of the snapshot, which need not end with a record batch.

    v1 adds the leader's endpoint (KIP-853).
    """

    throttle_time_ms: int = field("int32", ignorable=True)
    error_code: int = field("int16")
    topics: list[FetchSnapshotResponseTopicSnapshot] = field("[]struct")
    node_endpoints: list[NodeEndpoint] = field("[]struct", "1+", tag=0, tagged="1+")


class FetchSnapshotResponseTopicSnapshot(Struct):
    name: str = field("string")
    partitions: list[FetchSnapshotResponsePartitionSnapshot] = field("[]struct")


class FetchSnapshotResponsePartitionSnapshot(Struct):
    index: int = field("int32")
    error_code: int = field("int16")
    snapshot_id: SnapshotId = field("struct")
    current_leader: LeaderIdAndEpoch = field("struct", tag=0, tagged="0+")
    size: int = field("int64")
    position: int = field("int64")
    unaligned_records: bytes | memoryview | RecordsRegion | None = field("records")


class LeaderIdAndEpoch(Struct):
    leader_id: int = field("int32")
    leader_epoch: int = field("int32")
