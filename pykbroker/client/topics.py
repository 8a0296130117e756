"""Creating, describing, growing and deleting topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from pykbroker.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

from .cluster import Cluster
from .errors import UnknownTopic, check
from .metadata import PartitionMetadata, TopicMetadata

TIMEOUT_MS = 30_000
BROKER_DEFAULT = -1
DELETES_BY_STATE_SINCE = 6


async def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = BROKER_DEFAULT,
    replication_factor: int = BROKER_DEFAULT,
    assignment: Sequence[Sequence[int]] = (),
    configs: Mapping[str, str] | None = None,
) -> None:
    """`assignment` names the replicas of each partition and takes the place of both numbers. Raises KafkaError."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(assignment)
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )
    await cluster.controller_request(
        CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), CreateTopicsResponse, verify=_check_created
    )


async def grow_topic(cluster: Cluster, name: str, partitions: int, assignment: Sequence[Sequence[int]] = ()) -> None:
    """`assignment` names the replicas of each new partition. Raises KafkaError."""
    rows = [CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in assignment]
    topic = CreatePartitionsTopic(name=name, count=partitions, assignments=rows or None)
    await cluster.controller_request(
        CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), CreatePartitionsResponse, verify=_check_grown
    )


async def delete_topic(cluster: Cluster, name: str) -> None:
    connection = await cluster.any_connection()
    if connection.version_of(DeleteTopicsRequest) >= DELETES_BY_STATE_SINCE:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=TIMEOUT_MS)
    else:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS)
    await cluster.controller_request(request, DeleteTopicsResponse, verify=_check_deleted)


async def list_topics(cluster: Cluster) -> list[TopicMetadata]:
    """All of them, internal ones too, by name; asked for page by page where the broker can, for there may be many."""
    connection = await cluster.any_connection()
    if ApiKey.DESCRIBE_TOPIC_PARTITIONS not in connection.versions:
        metadata = await cluster.refresh()
        return [topic for _, topic in sorted(metadata.topics.items())]
    await cluster.refresh([])  # for the nodes
    topics = await _describe_by_page(cluster, [])
    found = {topic.name: topic for topic in sorted(topics, key=lambda topic: topic.name)}
    cluster.metadata = replace(cluster.metadata, topics=found)
    return list(found.values())


async def describe_topics(cluster: Cluster, names: Iterable[str]) -> list[TopicMetadata]:
    """Describe topics, with eligible leader replicas where the broker tells them. Raises UnknownTopic, KafkaError."""
    wanted = sorted(set(names))
    if not wanted:
        return []
    connection = await cluster.any_connection()
    if ApiKey.DESCRIBE_TOPIC_PARTITIONS in connection.versions:
        return await _describe_by_page(cluster, wanted)
    return [await cluster.topic(name) for name in wanted]


async def _describe_by_page(cluster: Cluster, names: list[str]) -> list[TopicMetadata]:
    """Describe topics; without names all of them. Raises UnknownTopic."""
    found: dict[str, TopicMetadata] = {}
    cursor = None
    while True:
        request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in names], cursor=cursor)
        response = await cluster.request(request, DescribeTopicPartitionsResponse)
        for row in response.topics:
            if row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                if not names:
                    continue  # deleted between two pages
                raise UnknownTopic(f"Topic '{row.name}' does not exist", row.name)
            check(row.error_code)
            assert row.name is not None
            topic = found.setdefault(row.name, TopicMetadata(row.name, row.topic_id, row.is_internal, {}))
            topic.partitions.update(_partitions(row))
        cursor = response.next_cursor
        if cursor is None:
            return list(found.values())


def _partitions(topic: DescribeTopicPartitionsResponseTopic) -> dict[int, PartitionMetadata]:
    return {
        row.partition_index: PartitionMetadata(
            partition=row.partition_index,
            leader_id=row.leader_id,
            leader_epoch=row.leader_epoch,
            replica_nodes=tuple(row.replica_nodes),
            isr_nodes=tuple(row.isr_nodes),
            offline_replicas=tuple(row.offline_replicas),
            eligible_leader_replicas=_tuple(row.eligible_leader_replicas),
            last_known_elr=_tuple(row.last_known_elr),
        )
        for row in topic.partitions
    }


def _tuple(ids: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if ids is None else tuple(ids)


def _check_created(response: CreateTopicsResponse) -> None:
    for row in response.topics:
        check(row.error_code, row.error_message)


def _check_grown(response: CreatePartitionsResponse) -> None:
    for row in response.results:
        check(row.error_code, row.error_message)


def _check_deleted(response: DeleteTopicsResponse) -> None:
    for row in response.responses:
        check(row.error_code, row.error_message)
