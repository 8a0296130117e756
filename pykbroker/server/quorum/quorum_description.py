"""The leader of the metadata quorum describes it: DescribeQuorum (KIP-595, KIP-836, KIP-853)."""

from __future__ import annotations

from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from pykbroker.raft.leader_state import ReplicaProgress
from pykbroker.raft.voters import NO_DIRECTORY

from ..runtime.clock import Clock
from .raft_driver import RaftDriver

METADATA_TOPIC = "__cluster_metadata"
PARTITION = 0
NODES_SINCE = 2
"""Where the nodes listen, and the directories of the replicas."""


def describe_quorum(
    raft: RaftDriver, image: MetadataImage, request: DescribeQuorumRequest, clock: Clock
) -> DescribeQuorumResponse:
    """Describe the quorum as version 2 of the API has it. Only the leader knows; others say that they do not lead."""
    asked = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [PARTITION])]:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return DescribeQuorumResponse(error_message="", topics=[_refused(*each, code) for each in asked])
    if raft.leader_state is None:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return DescribeQuorumResponse(error_message="", topics=[_refused(METADATA_TOPIC, [PARTITION], code)])
    topic = DescribeQuorumResponseTopicData(topic_name=METADATA_TOPIC, partitions=[_Quorum(raft, clock).describe()])
    return DescribeQuorumResponse(error_message="", topics=[topic], nodes=_nodes(image))


def leave_out_nodes(response: DescribeQuorumResponse) -> None:
    """Leave out the nodes, for versions before NODES_SINCE."""
    response.nodes = []
    for topic in response.topics:
        for partition in topic.partitions:
            for replica in (*partition.current_voters, *partition.observers):
                replica.replica_directory_id = NO_DIRECTORY


def _refused(name: str, indexes: list[int], code: ErrorCode) -> DescribeQuorumResponseTopicData:
    """Refuse all partitions: a request for anything but the quorum's one partition learns nothing at all, as from
    Kafka.
    """
    partitions = [
        DescribeQuorumResponsePartitionData(partition_index=index, error_code=code, error_message=code.description)
        for index in indexes
    ]
    return DescribeQuorumResponseTopicData(topic_name=name, partitions=partitions)


class _Quorum:
    """The quorum as its leader, this node, sees it."""

    def __init__(self, raft: RaftDriver, clock: Clock) -> None:
        self._raft = raft
        self._now_ms = clock.now_ms()
        self._since_ms = self._now_ms - clock.monotonic_ms()

    def describe(self) -> DescribeQuorumResponsePartitionData:
        raft, leader = self._raft, self._raft.leader_state
        assert leader is not None
        return DescribeQuorumResponsePartitionData(
            partition_index=PARTITION,
            error_message="",
            leader_id=raft.node_id,
            leader_epoch=raft.epoch,
            high_watermark=-1 if leader.high_watermark is None else leader.high_watermark,
            current_voters=[self._voter_state(each) for _, each in sorted(leader.voters.items())],
            observers=[self._state(each) for _, each in sorted(leader.observers.items())],
        )

    def _voter_state(self, progress: ReplicaProgress) -> ReplicaState:
        """Describe a voter. A static voter has no directory, whatever its fetches say: the key in the set of voters
        counts, as in Kafka's `LeaderState`.
        """
        state = self._own_state() if progress.key.node_id == self._raft.node_id else self._state(progress)
        state.replica_directory_id = progress.key.directory_id if self._raft.kraft_version else NO_DIRECTORY
        return state

    def _own_state(self) -> ReplicaState:
        return ReplicaState(
            replica_id=self._raft.node_id,
            log_end_offset=self._raft.log_end_offset,
            last_fetch_timestamp=self._now_ms,
            last_caught_up_timestamp=self._now_ms,
        )

    def _state(self, progress: ReplicaProgress) -> ReplicaState:
        return ReplicaState(
            replica_id=progress.key.node_id,
            replica_directory_id=progress.key.directory_id,
            log_end_offset=-1 if progress.end_offset is None else progress.end_offset,
            last_fetch_timestamp=self._timestamp(progress.last_fetch_ms),
            last_caught_up_timestamp=self._timestamp(progress.last_caught_up_ms),
        )

    def _timestamp(self, monotonic_ms: int | None) -> int:
        return -1 if monotonic_ms is None else self._since_ms + monotonic_ms


def _nodes(image: MetadataImage) -> list[Node]:
    return [
        Node(
            node_id=controller_id,
            listeners=[Listener(name=each.name, host=each.host, port=each.port) for each in controller.endpoints],
        )
        for controller_id, controller in sorted(image.controllers.items())
    ]
