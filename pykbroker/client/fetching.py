"""One complete Fetch of some partitions that a broker leads, so that the broker remembers nothing of its client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .errors import KafkaError, code_of
from .metadata import Node

_TOPIC_IDS_SINCE: Final = 13
_CONSUMER: Final = -1
_NO_SESSION_EPOCH: Final = -1


async def fetch_from(
    cluster: Cluster,
    node: Node,
    offsets: Mapping[TopicPartition, int],
    *,
    isolation_level: int,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    partition_max_bytes: int,
) -> dict[TopicPartition, PartitionData]:
    """Return what a broker answers for each partition, its errors included. Raises ClientError."""
    connection = await cluster.node_connection(node)
    version = connection.version_of(FetchRequest)
    topics: dict[str, FetchTopic] = {}
    for of, offset in offsets.items():
        if of.topic not in topics:
            has_id = version >= _TOPIC_IDS_SINCE
            topics[of.topic] = (
                FetchTopic(topic_id=(await cluster.topic(of.topic)).topic_id) if has_id else FetchTopic(topic=of.topic)
            )
        topics[of.topic].partitions.append(
            FetchPartition(partition=of.partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
        )
    request = FetchRequest(
        replica_id=_CONSUMER,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=0,
        session_epoch=_NO_SESSION_EPOCH,
        topics=list(topics.values()),
    )
    response = await connection.request(request, FetchResponse, version=version)
    if response.error_code != ErrorCode.NONE:
        raise KafkaError(code_of(response.error_code))
    names = {row.topic_id: name for name, row in topics.items()}
    found: dict[TopicPartition, PartitionData] = {}
    for topic in response.responses:
        name = names.get(topic.topic_id) if version >= _TOPIC_IDS_SINCE else topic.topic
        for data in topic.partitions:
            if name is not None:
                found[TopicPartition(name, data.partition_index)] = data
    return found
