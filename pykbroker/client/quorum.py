"""The quorum of the controllers: its state, and changes of its voters (DescribeQuorum, KIP-836 and KIP-853)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    ReplicaState,
)
from pykbroker.protocol.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

from .cluster import Cluster
from .errors import ConnectionLost, check
from .metadata import Node

METADATA_TOPIC: Final = "__cluster_metadata"
NO_LEADER: Final = -1
_TIMEOUT_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class QuorumEndpoint:
    """A listener of a controller."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A voter or an observer. Timestamps are in milliseconds, None where nobody told."""

    node_id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """The quorum. leader_id: NO_LEADER while there is none. endpoints: of voters, by node id, where they are told."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: dict[int, tuple[QuorumEndpoint, ...]]

    @property
    def leader(self) -> QuorumReplica | None:
        return next((each for each in self.voters if each.node_id == self.leader_id), None)


async def describe_quorum(cluster: Cluster, node: Node | None = None) -> QuorumDescription:
    """Ask a node, or any broker, which forwards to the leader. Raises ClientError."""
    asked = DescribeQuorumRequestTopicData(
        topic_name=METADATA_TOPIC, partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
    )
    response = await cluster.request(
        DescribeQuorumRequest(topics=[asked]), DescribeQuorumResponse, node=node, verify=_check_described
    )
    partition = _partition(response)
    return QuorumDescription(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        _replicas(partition.current_voters),
        _replicas(partition.observers),
        {
            each.node_id: tuple(QuorumEndpoint(at.name, at.host, at.port) for at in each.listeners)
            for each in response.nodes
        },
    )


async def add_voter(
    cluster: Cluster,
    node_id: int,
    directory_id: bytes,
    endpoints: Sequence[QuorumEndpoint],
    node: Node | None = None,
) -> None:
    """Make a controller a voter. Raises KafkaError."""
    request = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=_TIMEOUT_MS,
        voter_id=node_id,
        voter_directory_id=directory_id,
        listeners=[Listener(name=each.name, host=each.host, port=each.port) for each in endpoints],
    )
    await cluster.request(request, AddRaftVoterResponse, node=node, verify=_check_changed)


async def remove_voter(cluster: Cluster, node_id: int, directory_id: bytes, node: Node | None = None) -> None:
    """Make a voter an observer. Raises KafkaError."""
    request = RemoveRaftVoterRequest(cluster_id=None, voter_id=node_id, voter_directory_id=directory_id)
    await cluster.request(request, RemoveRaftVoterResponse, node=node, verify=_check_changed)


def _partition(response: DescribeQuorumResponse) -> DescribeQuorumResponsePartitionData:
    found = [each for topic in response.topics for each in topic.partitions]
    if len(found) != 1:
        raise ConnectionLost("The answer is not about the metadata log")
    return found[0]


def _replicas(rows: Sequence[ReplicaState]) -> tuple[QuorumReplica, ...]:
    return tuple(
        QuorumReplica(
            row.replica_id,
            row.replica_directory_id,
            row.log_end_offset,
            None if row.last_fetch_timestamp < 0 else row.last_fetch_timestamp,
            None if row.last_caught_up_timestamp < 0 else row.last_caught_up_timestamp,
        )
        for row in rows
    )


def _check_described(response: DescribeQuorumResponse) -> None:
    check(response.error_code, response.error_message)
    partition = _partition(response)
    check(partition.error_code, partition.error_message)


def _check_changed(response: AddRaftVoterResponse | RemoveRaftVoterResponse) -> None:
    check(response.error_code, response.error_message)
