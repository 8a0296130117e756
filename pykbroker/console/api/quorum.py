"""The quorum of the metadata log: who leads it, its voters and observers, and how far behind each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import KafkaError, check
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    ReplicaState,
)

_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class QuorumRow:
    """A node. lag: in offsets, behind the leader; caught_up_ms: when it last had none. None where the leader does not
    know.
    """

    id: int
    role: str
    end_offset: int | None
    lag: int | None
    caught_up_ms: int | None


@dataclass(frozen=True, slots=True)
class Quorum:
    """The quorum, with voters first."""

    leader: int
    epoch: int
    high_watermark: int
    nodes: Sequence[QuorumRow]


async def describe_quorum(cluster: Cluster) -> Quorum:
    """Raises KafkaError, ClientError."""
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    response = await cluster.request(DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse, verify=_check)
    found = response.topics[0].partitions[0]
    end = max(
        (each.log_end_offset for each in found.current_voters if each.replica_id == found.leader_id), default=None
    )
    return Quorum(found.leader_id, found.leader_epoch, found.high_watermark, _rows(found, end))


def _rows(found: DescribeQuorumResponsePartitionData, end: int | None) -> list[QuorumRow]:
    leader = found.leader_id
    voters = [_row(each, "leader" if each.replica_id == leader else "voter", end) for each in found.current_voters]
    return voters + [_row(each, "observer", end) for each in found.observers]


def _row(replica: ReplicaState, role: str, end: int | None) -> QuorumRow:
    offset = None if replica.log_end_offset == _UNKNOWN else replica.log_end_offset
    return QuorumRow(
        id=replica.replica_id,
        role=role,
        end_offset=offset,
        lag=None if offset is None or end is None else max(0, end - offset),
        caught_up_ms=None if replica.last_caught_up_timestamp == _UNKNOWN else replica.last_caught_up_timestamp,
    )


def _check(response: DescribeQuorumResponse) -> None:
    check(response.error_code, response.error_message)
    if not response.topics or not response.topics[0].partitions:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    check(response.topics[0].partitions[0].error_code)
