"""The ends of leader epochs in the logs (OffsetForLeaderEpoch, KIP-320).

Whoever has read up to an offset learns whether the log still has what was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .errors import ClientError, KafkaError, code_of
from .metadata import Node

_CONSUMER = -1


class EpochEnd(NamedTuple):
    """An answer: the largest leader epoch that is not beyond the one asked for. Both are -1 where the log has none."""

    leader_epoch: int
    end_offset: int


async def end_offsets_for_epochs(
    cluster: Cluster, epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, EpochEnd]:
    """Raises UnknownTopic, KafkaError."""
    found: dict[TopicPartition, EpochEnd] = {}

    async def attempt() -> None:
        missing = {partition: epoch for partition, epoch in epochs.items() if partition not in found}
        try:
            await _ask_leaders(cluster, missing, found)
        except ClientError as error:
            if error.retriable:
                await cluster.refresh({partition.topic for partition in missing})
            raise

    await cluster.retrying(attempt)
    return found


async def _ask_leaders(
    cluster: Cluster, epochs: Mapping[TopicPartition, int], found: dict[TopicPartition, EpochEnd]
) -> None:
    by_leader: dict[Node, dict[str, OffsetForLeaderTopic]] = {}
    for partition, epoch in epochs.items():
        topics = by_leader.setdefault(await cluster.leader(partition), {})
        row = topics.setdefault(partition.topic, OffsetForLeaderTopic(topic=partition.topic))
        row.partitions.append(OffsetForLeaderPartition(partition=partition.partition, leader_epoch=epoch))
    for node, topics in by_leader.items():
        connection = await cluster.node_connection(node)
        request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))
        response = await connection.request(request, OffsetForLeaderEpochResponse)
        for topic in response.topics:
            for answer in topic.partitions:
                partition = TopicPartition(topic.topic, answer.partition)
                if answer.error_code != ErrorCode.NONE:
                    error_code = code_of(answer.error_code)
                    raise KafkaError(error_code, f"Partition {partition}: {error_code.description}")
                found[partition] = EpochEnd(answer.leader_epoch, answer.end_offset)
