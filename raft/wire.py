"""The one topic and its one partition in the messages of a quorum: taking them out, and building around them.

A message from a peer may hold anything; `…_of` gives the part about `__cluster_metadata-0`, or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import fetch, quorum
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import METADATA_TOPIC_ID

from .epochs import OffsetAndEpoch
from .replica import LocalReplica
from .snapshots import SnapshotId
from .voters import Endpoint, ReplicaKey

TOPIC = "__cluster_metadata"
PARTITION = 0
NO_LEADER = -1
FETCH_MAX_WAIT_MS = 500

_Voting = quorum.VoteRequest | quorum.BeginQuorumEpochRequest | quorum.EndQuorumEpochRequest


def partition_of(message: Any) -> Any:
    """Return the partition of a message about votes and epochs; None unless it has exactly the metadata partition."""
    if len(message.topics) != 1 or message.topics[0].topic_name != TOPIC:
        return None
    partitions = message.topics[0].partitions
    return partitions[0] if len(partitions) == 1 and partitions[0].partition_index == PARTITION else None


def fetched_partition_of(request: fetch.FetchRequest) -> fetch.FetchPartition | None:
    if len(request.topics) != 1 or not (
        request.topics[0].topic_id == METADATA_TOPIC_ID or request.topics[0].topic == TOPIC
    ):
        return None
    partitions = request.topics[0].partitions
    return partitions[0] if len(partitions) == 1 and partitions[0].partition == PARTITION else None


def fetch_answer_of(response: fetch.FetchResponse) -> fetch.PartitionData | None:
    topics = response.responses
    if len(topics) != 1 or not (topics[0].topic_id == METADATA_TOPIC_ID or topics[0].topic == TOPIC):
        return None
    partitions = topics[0].partitions
    return partitions[0] if len(partitions) == 1 and partitions[0].partition_index == PARTITION else None


def fetching_replica(request: fetch.FetchRequest, partition: fetch.FetchPartition) -> ReplicaKey:
    node_id = request.replica_state.replica_id if request.replica_state.replica_id >= 0 else request.replica_id
    return ReplicaKey(node_id, partition.replica_directory_id)


@dataclass(frozen=True, slots=True)
class Leadership:
    """The leader that a peer tells: nobody where it knows none. endpoint: None where it was not told."""

    epoch: int
    leader_id: int | None
    endpoint: Endpoint | None = None


def leadership(epoch: int, leader_id: int, node_endpoints: Sequence[Any]) -> Leadership:
    if leader_id < 0:
        return Leadership(epoch, None)
    named = [each for each in node_endpoints if each.node_id == leader_id]
    return Leadership(epoch, leader_id, Endpoint("", named[0].host, named[0].port) if named else None)


# Requests


def vote_request(
    replica: LocalReplica, voter: ReplicaKey, epoch: int, log_end: OffsetAndEpoch, *, pre_vote: bool
) -> quorum.VoteRequest:
    partition = quorum.VoteRequestPartitionData(
        partition_index=PARTITION,
        replica_epoch=epoch,
        replica_id=replica.node_id,
        replica_directory_id=replica.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=log_end.epoch,
        last_offset=log_end.offset,
        pre_vote=pre_vote,
    )
    topic = quorum.VoteRequestTopicData(topic_name=TOPIC, partitions=[partition])
    return quorum.VoteRequest(cluster_id=replica.cluster_id, voter_id=voter.node_id, topics=[topic])


def begin_quorum_epoch_request(replica: LocalReplica, voter: ReplicaKey, epoch: int) -> quorum.BeginQuorumEpochRequest:
    partition = quorum.BeginQuorumEpochRequestPartitionData(
        partition_index=PARTITION,
        voter_directory_id=voter.directory_id,
        leader_id=replica.node_id,
        leader_epoch=epoch,
    )
    topic = quorum.BeginQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])
    return quorum.BeginQuorumEpochRequest(
        cluster_id=replica.cluster_id,
        voter_id=voter.node_id,
        topics=[topic],
        leader_endpoints=_leader_endpoints(replica),
    )


def end_quorum_epoch_request(
    replica: LocalReplica, epoch: int, successors: Sequence[ReplicaKey]
) -> quorum.EndQuorumEpochRequest:
    partition = quorum.EndQuorumEpochRequestPartitionData(
        partition_index=PARTITION,
        leader_id=replica.node_id,
        leader_epoch=epoch,
        preferred_successors=[each.node_id for each in successors],
        preferred_candidates=[
            quorum.ReplicaInfo(candidate_id=each.node_id, candidate_directory_id=each.directory_id)
            for each in successors
        ],
    )
    topic = quorum.EndQuorumEpochRequestTopicData(topic_name=TOPIC, partitions=[partition])
    return quorum.EndQuorumEpochRequest(
        cluster_id=replica.cluster_id, topics=[topic], leader_endpoints=_leader_endpoints(replica)
    )


def _leader_endpoints(replica: LocalReplica) -> list[quorum.LeaderEndpoint]:
    return [quorum.LeaderEndpoint(name=each.name, host=each.host, port=each.port) for each in replica.endpoints]


def fetch_request(
    replica: LocalReplica, epoch: int, log_end: OffsetAndEpoch, high_watermark: int, max_bytes: int
) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=epoch,
        fetch_offset=log_end.offset,
        last_fetched_epoch=log_end.epoch,
        partition_max_bytes=0,
        replica_directory_id=replica.directory_id,
        high_watermark=high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=replica.cluster_id,
        replica_state=fetch.ReplicaState(replica_id=replica.node_id),
        max_wait_ms=FETCH_MAX_WAIT_MS,
        max_bytes=max_bytes,
        topics=[fetch.FetchTopic(topic=TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def fetch_snapshot_request(
    replica: LocalReplica, epoch: int, snapshot_id: SnapshotId, position: int, max_bytes: int
) -> quorum.FetchSnapshotRequest:
    partition = quorum.FetchSnapshotRequestPartitionSnapshot(
        partition=PARTITION,
        current_leader_epoch=epoch,
        snapshot_id=quorum.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        position=position,
        replica_directory_id=replica.directory_id,
    )
    topic = quorum.FetchSnapshotRequestTopicSnapshot(name=TOPIC, partitions=[partition])
    return quorum.FetchSnapshotRequest(
        cluster_id=replica.cluster_id, replica_id=replica.node_id, max_bytes=max_bytes, topics=[topic]
    )


# Responses


@dataclass(frozen=True, slots=True)
class Known:
    """The part of a response about the quorum. endpoint: of the leader, where the version has a place for it."""

    epoch: int
    leader_id: int
    endpoint: Endpoint | None

    def node_endpoints(self) -> list[quorum.NodeEndpoint]:
        if self.endpoint is None or self.leader_id < 0:
            return []
        return [quorum.NodeEndpoint(node_id=self.leader_id, host=self.endpoint.host, port=self.endpoint.port)]


def vote_response(known: Known, error: ErrorCode, *, granted: bool) -> quorum.VoteResponse:
    partition = quorum.VoteResponsePartitionData(
        partition_index=PARTITION,
        error_code=error,
        leader_id=known.leader_id,
        leader_epoch=known.epoch,
        vote_granted=granted,
    )
    topic = quorum.VoteResponseTopicData(topic_name=TOPIC, partitions=[partition])
    return quorum.VoteResponse(topics=[topic], node_endpoints=known.node_endpoints())


def begin_quorum_epoch_response(known: Known, error: ErrorCode) -> quorum.BeginQuorumEpochResponse:
    partition = quorum.BeginQuorumEpochResponsePartitionData(
        partition_index=PARTITION, error_code=error, leader_id=known.leader_id, leader_epoch=known.epoch
    )
    topic = quorum.BeginQuorumEpochResponseTopicData(topic_name=TOPIC, partitions=[partition])
    return quorum.BeginQuorumEpochResponse(topics=[topic], node_endpoints=known.node_endpoints())


def end_quorum_epoch_response(known: Known, error: ErrorCode) -> quorum.EndQuorumEpochResponse:
    partition = quorum.EndQuorumEpochResponsePartitionData(
        partition_index=PARTITION, error_code=error, leader_id=known.leader_id, leader_epoch=known.epoch
    )
    topic = quorum.EndQuorumEpochResponseTopicData(topic_name=TOPIC, partitions=[partition])
    return quorum.EndQuorumEpochResponse(topics=[topic], node_endpoints=known.node_endpoints())


def fetch_response(
    known: Known,
    error: ErrorCode,
    *,
    high_watermark: int = -1,
    log_start_offset: int = -1,
    diverging: OffsetAndEpoch | None = None,
    snapshot_id: SnapshotId | None = None,
) -> fetch.FetchResponse:
    partition = fetch.PartitionData(
        partition_index=PARTITION,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=known.leader_id, leader_epoch=known.epoch),
        records=b"",
    )
    if diverging is not None:
        partition.diverging_epoch = fetch.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.offset)
    if snapshot_id is not None:
        partition.snapshot_id = fetch.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
    topic = fetch.FetchableTopicResponse(topic=TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    endpoints = [
        fetch.NodeEndpoint(node_id=each.node_id, host=each.host, port=each.port) for each in known.node_endpoints()
    ]
    return fetch.FetchResponse(responses=[topic], node_endpoints=endpoints)


def fetch_snapshot_response(
    known: Known, error: ErrorCode, *, topic: str = TOPIC, partition: int = PARTITION
) -> quorum.FetchSnapshotResponse:
    answer = quorum.FetchSnapshotResponsePartitionSnapshot(
        index=partition,
        error_code=error,
        current_leader=quorum.LeaderIdAndEpoch(leader_id=known.leader_id, leader_epoch=known.epoch),
        unaligned_records=b"",
    )
    return quorum.FetchSnapshotResponse(
        topics=[quorum.FetchSnapshotResponseTopicSnapshot(name=topic, partitions=[answer])],
        node_endpoints=known.node_endpoints(),
    )


FIRST_VERSION_WITH_ENDPOINTS: dict[type[Message], int] = {
    quorum.VoteRequest: 1,
    quorum.BeginQuorumEpochRequest: 1,
    quorum.EndQuorumEpochRequest: 1,
    quorum.FetchSnapshotRequest: 1,
    fetch.FetchRequest: 16,
}
"""Of the requests whose answers can name the leader's endpoint."""

FIRST_FETCH_VERSION = 12
"""Answers to older ones can tell neither the leader nor where two logs part."""
