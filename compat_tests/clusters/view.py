"""What single nodes tell of their cluster: each asked for itself, over a plain socket, because their views differ."""

from __future__ import annotations

from dataclasses import dataclass

from compat_tests.wire import Closed, Silent, Wire
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykbroker.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)

METADATA_TOPIC = "__cluster_metadata"
ANSWER_DEADLINE_S = 5.0
"""A node that says nothing for so long is of no help now."""


class NoAnswer(Exception):
    """The node does not run, does not serve, or takes too long."""


@dataclass(frozen=True, slots=True)
class PartitionView:
    """leader: -1 where there is none."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: frozenset[int]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """brokers: those that are not fenced, as `topics` by the node that was asked."""

    cluster_id: str
    brokers: frozenset[int]
    topics: dict[str, dict[int, PartitionView]]


@dataclass(frozen=True, slots=True)
class QuorumView:
    """leader: -1 where none is known. The ends of the log are what the leader knows of each replica."""

    leader: int
    epoch: int
    high_watermark: int
    voters: dict[int, int]
    observers: dict[int, int]


def ask_cluster(address: tuple[str, int], *topics: str, deadline_s: float = ANSWER_DEADLINE_S) -> ClusterView:
    """Of these topics, or of all of them. Raises NoAnswer."""
    wanted = [MetadataRequestTopic(name=name) for name in topics] if topics else None
    answer = _ask(address, MetadataRequest(topics=wanted, allow_auto_topic_creation=False), 12, deadline_s)
    assert isinstance(answer, MetadataResponse)
    return ClusterView(
        answer.cluster_id or "",
        frozenset(broker.node_id for broker in answer.brokers),
        {
            str(topic.name): {
                each.partition_index: PartitionView(
                    each.leader_id, each.leader_epoch, tuple(each.replica_nodes), frozenset(each.isr_nodes)
                )
                for each in topic.partitions
            }
            for topic in answer.topics
            if not topic.error_code
        },
    )


def ask_quorum(address: tuple[str, int]) -> QuorumView:
    """Raises NoAnswer, also where the node knows of no leader that could say."""
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    answer = _ask(address, DescribeQuorumRequest(topics=[topic]), 2, ANSWER_DEADLINE_S)
    assert isinstance(answer, DescribeQuorumResponse)
    if answer.error_code or answer.topics[0].partitions[0].error_code:
        raise NoAnswer(f"{address} answers DescribeQuorum with an error")
    (told,) = answer.topics[0].partitions
    return QuorumView(
        told.leader_id,
        told.leader_epoch,
        told.high_watermark,
        {each.replica_id: each.log_end_offset for each in told.current_voters},
        {each.replica_id: each.log_end_offset for each in told.observers},
    )


def _ask(
    address: tuple[str, int], request: MetadataRequest | DescribeQuorumRequest, version: int, deadline_s: float
) -> object:
    try:
        with Wire(address, deadline_s) as wire:
            return wire.call(request, version, deadline_s=deadline_s)
    except (OSError, Closed, Silent) as error:
        raise NoAnswer(f"{address}: {error!r}") from error
