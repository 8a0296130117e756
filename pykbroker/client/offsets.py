"""Offsets at the beginning, at the end, or at a point in time (ListOffsets)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
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
from .errors import ClientError, UnsupportedByBroker
from .leaders import Answers, ask_leaders, ask_reachable_leaders

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6
_SINCE_VERSION = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
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

    return await ask_leaders(cluster, timestamps, _asking(isolation_level))


async def list_reachable_offsets(
    cluster: Cluster,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: int = READ_UNCOMMITTED,
    on_answer: Callable[[int], None] = lambda count: None,
) -> dict[TopicPartition, OffsetAndTimestamp | ClientError]:
    """Return what `list_offsets` does where the leader answers, and why not elsewhere.

    The leaders are those of the cluster's metadata. on_answer: as of `ask_reachable_leaders`.
    """
    return await ask_reachable_leaders(cluster, timestamps, _asking(isolation_level), on_answer=on_answer)


def _asking(
    isolation_level: int,
) -> Callable[[Connection, Mapping[TopicPartition, int]], Awaitable[Answers[OffsetAndTimestamp]]]:
    """Return what sends one request to a leader."""

    async def ask(connection: Connection, times: Mapping[TopicPartition, int]) -> Answers[OffsetAndTimestamp]:
        version = connection.version_of(ListOffsetsRequest)
        if version < max(_SINCE_VERSION.get(timestamp, 0) for timestamp in times.values()):
            raise UnsupportedByBroker(f"{connection.peer} does not know such a place in a log")
        topics: dict[str, ListOffsetsTopic] = {}
        for at, timestamp in times.items():
            row = topics.setdefault(at.topic, ListOffsetsTopic(name=at.topic))
            row.partitions.append(ListOffsetsPartition(partition_index=at.partition, timestamp=timestamp))
        request = ListOffsetsRequest(
            replica_id=_CONSUMER, isolation_level=isolation_level, topics=list(topics.values())
        )
        response = await connection.request(request, ListOffsetsResponse, version=version)
        return [
            (
                TopicPartition(topic.name, row.partition_index),
                row.error_code,
                OffsetAndTimestamp(row.offset, row.timestamp, row.leader_epoch),
            )
            for topic in response.topics
            for row in topic.partitions
        ]

    return ask
