"""Offsets at the beginning, at the end, or at a point in time (ListOffsets)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .connection import Connection
from .leaders import Answers, ask_leaders

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

    async def ask(connection: Connection, times: Mapping[TopicPartition, int]) -> Answers[OffsetAndTimestamp]:
        topics: dict[str, ListOffsetsTopic] = {}
        for at, timestamp in times.items():
            row = topics.setdefault(at.topic, ListOffsetsTopic(name=at.topic))
            row.partitions.append(ListOffsetsPartition(partition_index=at.partition, timestamp=timestamp))
        request = ListOffsetsRequest(
            replica_id=_CONSUMER, isolation_level=isolation_level, topics=list(topics.values())
        )
        response = await connection.request(request, ListOffsetsResponse)
        return [
            (
                TopicPartition(topic.name, row.partition_index),
                row.error_code,
                OffsetAndTimestamp(row.offset, row.timestamp, row.leader_epoch),
            )
            for topic in response.topics
            for row in topic.partitions
        ]

    return await ask_leaders(cluster, timestamps, ask)
