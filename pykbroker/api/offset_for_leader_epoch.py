"""OffsetForLeaderEpoch (key 23): where a leader epoch ended, so that a reader finds where its log took another way.

Served are versions 2 to 4 (KIP-101, KIP-320): 3 brought the replica id, 4 flexible encoding.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.replicas.replica_manager import ReplicaManager

_STEPS_OF_PARTITION = 4


@handles(OffsetForLeaderEpochRequest)
async def offset_for_leader_epoch(
    context: RequestContext[Broker], request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    replicas = context.node.partitions
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        answer = OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(answer)
        for each in topic.partitions:
            answer.partitions.append(_end_offset(replicas, topic.topic, each))
            await context.turn.took(_STEPS_OF_PARTITION)
    return response


def _end_offset(replicas: ReplicaManager, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = replicas.get_partition(topic, asked.partition)
    if isinstance(partition, ErrorCode):
        return EpochEndOffset(partition=asked.partition, error_code=partition)
    found = partition.end_offset_for_epoch(asked.leader_epoch, asked.current_leader_epoch)
    return EpochEndOffset(
        partition=asked.partition,
        error_code=found.error_code,
        leader_epoch=found.leader_epoch,
        end_offset=found.end_offset,
    )
