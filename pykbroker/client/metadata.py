"""The metadata of a cluster as a client knows it: nodes, topics, and the leader of each partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from pykbroker.protocol.topic_partition import TopicPartition

from .errors import code_of

NO_LEADER = -1


class Node(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """The last two are known from DescribeTopicPartitions only (KIP-966)."""

    partition: int
    leader_id: int
    leader_epoch: int
    replica_nodes: tuple[int, ...]
    isr_nodes: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    name: str
    topic_id: bytes
    is_internal: bool
    partitions: dict[int, PartitionMetadata]


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """`errors` holds the topics that were asked for and have no metadata."""

    cluster_id: str | None = None
    controller_id: int = -1
    nodes: dict[int, Node] = field(default_factory=dict)
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    errors: dict[str, ErrorCode] = field(default_factory=dict)

    def leader(self, of: TopicPartition) -> Node | None:
        topic = self.topics.get(of.topic)
        partition = topic.partitions.get(of.partition) if topic is not None else None
        return self.nodes.get(partition.leader_id) if partition is not None else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((topic.name for topic in self.topics.values() if topic.topic_id == topic_id), None)


def from_response(response: MetadataResponse) -> ClusterMetadata:
    topics = {topic.name: topic for topic in response.topics if topic.name is not None}
    return ClusterMetadata(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        nodes={
            broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers
        },
        topics={name: _topic(name, topic) for name, topic in topics.items() if topic.error_code == ErrorCode.NONE},
        errors={name: code_of(topic.error_code) for name, topic in topics.items() if topic.error_code},
    )


def _topic(name: str, topic: MetadataResponseTopic) -> TopicMetadata:
    partitions = {
        row.partition_index: PartitionMetadata(
            partition=row.partition_index,
            leader_id=row.leader_id,
            leader_epoch=row.leader_epoch,
            replica_nodes=tuple(row.replica_nodes),
            isr_nodes=tuple(row.isr_nodes),
            offline_replicas=tuple(row.offline_replicas),
        )
        for row in topic.partitions
    }
    return TopicMetadata(name, topic.topic_id, topic.is_internal, dict(sorted(partitions.items())))
