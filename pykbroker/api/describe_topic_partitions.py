"""DescribeTopicPartitions (key 75): topics page by page, in the order of their names (KIP-966).

Served is version 0. A page has at most `max.request.partition.size.limit` partitions; the cursor names the first
partition of the next one.
"""

from __future__ import annotations

from pykbroker.metadata.image import TopicState
from pykbroker.metadata.topic_names import invalid_reason, is_internal
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from pykbroker.server.dispatch import RequestContext, handles

from .authorized_operations import TOPIC_OPERATIONS
from .offline_replicas import OfflineReplicas


@handles(DescribeTopicPartitionsRequest)
async def describe_topic_partitions(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    image, cursor = context.broker.image, request.cursor
    requested = [each.name for each in request.topics]
    if cursor is not None and (cursor.partition_index < 0 or (requested and cursor.topic_name not in requested)):
        return _invalid(requested)
    names = sorted(set(requested or image.topics))
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    limit = context.broker.config.int("max.request.partition.size.limit")
    room = max(min(request.response_partition_limit, limit), 1)
    response = DescribeTopicPartitionsResponse()
    for name in names:
        topic = image.topic(name)
        if topic is None:
            response.topics.append(_unknown(name))
            continue
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        start = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        indexes = [index for index in sorted(topic.partitions) if index >= start]
        response.topics.append(_described(context, topic, indexes[:room]))
        if len(indexes) > room:
            response.next_cursor = Cursor(topic_name=name, partition_index=indexes[room])
            break
        room -= len(indexes)
    return response


def _invalid(names: list[str]) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=name) for name in names]
    )


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if invalid_reason(name) is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code=error, name=name, is_internal=is_internal(name), topic_authorized_operations=TOPIC_OPERATIONS
    )


def _described(context: RequestContext, topic: TopicState, indexes: list[int]) -> DescribeTopicPartitionsResponseTopic:
    offline = OfflineReplicas(context.broker.image, context.listener_name)
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(context, topic, index, offline) for index in indexes],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(
    context: RequestContext, topic: TopicState, index: int, offline: OfflineReplicas
) -> DescribeTopicPartitionsResponsePartition:
    partition = topic.partitions[index]
    error_code = _leader_error(context, partition.leader)
    return DescribeTopicPartitionsResponsePartition(
        error_code=error_code,
        partition_index=index,
        leader_id=-1 if error_code else partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.eligible_leader_replicas),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline.of(partition),
    )


def _leader_error(context: RequestContext, leader: int) -> ErrorCode:
    image = context.broker.image
    if not image.is_alive(leader):
        return ErrorCode.LEADER_NOT_AVAILABLE
    reachable = image.brokers[leader].endpoint(context.listener_name) is not None
    return ErrorCode.NONE if reachable else ErrorCode.LISTENER_NOT_FOUND
