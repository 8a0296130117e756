"""The ends of leader epochs in the logs (OffsetForLeaderEpoch, KIP-320).

Whoever has read up to an offset learns whether the log still has what was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pykbroker.protocol.messages.offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .connection import Connection
from .leaders import Answers, ask_leaders

_CONSUMER = -1


class EpochEnd(NamedTuple):
    """An answer: the largest leader epoch that is not beyond the one asked for. Both are -1 where the log has none."""

    leader_epoch: int
    end_offset: int


async def end_offsets_for_epochs(
    cluster: Cluster, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, EpochEnd]:
    """Raises UnknownTopic, KafkaError."""
    return await ask_leaders(cluster, epochs, _ask)


async def _ask(connection: Connection, epochs: Mapping[TopicPartition, int]) -> Answers[EpochEnd]:
    topics: dict[str, OffsetForLeaderTopic] = {}
    for at, epoch in epochs.items():
        row = topics.setdefault(at.topic, OffsetForLeaderTopic(topic=at.topic))
        row.partitions.append(OffsetForLeaderPartition(partition=at.partition, leader_epoch=epoch))
    request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))
    response = await connection.request(request, OffsetForLeaderEpochResponse)
    return [
        (TopicPartition(topic.topic, row.partition), row.error_code, EpochEnd(row.leader_epoch, row.end_offset))
        for topic in response.topics
        for row in topic.partitions
    ]
