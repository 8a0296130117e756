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
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.replicas.replica_manager import ReplicaManager

from .authorization import is_allowed, is_allowed_on_cluster

_STEPS_OF_PARTITION = 4


@handles(
    OffsetForLeaderEpochRequest,
    needs=names((Operation.CLUSTER_ACTION, ResourceType.CLUSTER), (Operation.DESCRIBE, ResourceType.TOPIC)),
)
async def offset_for_leader_epoch(
    context: RequestContext[Broker], request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    replicas = context.node.partitions
    is_broker = is_allowed_on_cluster(context, Operation.CLUSTER_ACTION, is_logged=False)
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        answer = OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(answer)
        may_know = is_broker or is_allowed(context, Operation.DESCRIBE, ResourceType.TOPIC, topic.topic)
        for each in topic.partitions:
            answer.partitions.append(_end_offset(replicas, topic.topic, each) if may_know else _denied(each))
            await context.turn.took(_STEPS_OF_PARTITION)
    return response


def _denied(asked: OffsetForLeaderPartition) -> EpochEndOffset:
    return EpochEndOffset(partition=asked.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)


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
