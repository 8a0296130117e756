"""Offsets at the beginning, at the end, or at a point in time (ListOffsets)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .errors import ClientError, KafkaError, code_of
from .metadata import Node

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
READ_UNCOMMITTED = 0
READ_COMMITTED = 1
_CONSUMER = -1


class OffsetAndTimestamp(NamedTuple):
    """`offset` is -1 where no record is that young."""

    offset: int
    timestamp: int
    leader_epoch: int


async def list_offsets(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], *, isolation_level: int = READ_UNCOMMITTED
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """The first offset at or after each timestamp. Raises UnknownTopic, KafkaError."""
    found: dict[TopicPartition, OffsetAndTimestamp] = {}

    async def attempt() -> None:
        missing = {partition: time for partition, time in timestamps.items() if partition not in found}
        try:
            await _ask_leaders(cluster, missing, isolation_level, found)
        except ClientError as error:
            if error.retriable:
                await cluster.refresh({partition.topic for partition in missing})
            raise

    await cluster.retrying(attempt)
    return found


async def _ask_leaders(
    cluster: Cluster,
    timestamps: Mapping[TopicPartition, int],
    isolation_level: int,
    found: dict[TopicPartition, OffsetAndTimestamp],
) -> None:
    by_leader: dict[Node, dict[str, ListOffsetsTopic]] = {}
    for partition, timestamp in timestamps.items():
        topics = by_leader.setdefault(await cluster.leader(partition), {})
        row = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic))
        row.partitions.append(ListOffsetsPartition(partition_index=partition.partition, timestamp=timestamp))
    for node, topics in by_leader.items():
        connection = await cluster.node_connection(node)
        request = ListOffsetsRequest(
            replica_id=_CONSUMER, isolation_level=isolation_level, topics=list(topics.values())
        )
        response = await connection.request(request, ListOffsetsResponse)
        for topic in response.topics:
            for answer in topic.partitions:
                partition = TopicPartition(topic.name, answer.partition_index)
                if answer.error_code != ErrorCode.NONE:
                    error_code = code_of(answer.error_code)
                    raise KafkaError(error_code, f"Partition {partition}: {error_code.description}")
                found[partition] = OffsetAndTimestamp(answer.offset, answer.timestamp, answer.leader_epoch)
