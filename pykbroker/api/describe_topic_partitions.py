"""DescribeTopicPartitions (key 75): topics page by page, in the order of their names (KIP-966).

Served is version 0. A page has at most `max.request.partition.size.limit` partitions; the cursor names the first
partition of the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pykbroker.metadata.encoded_topics import leader_error
from pykbroker.metadata.image import TopicState
from pykbroker.metadata.offline_replicas import OfflineReplicas
from pykbroker.metadata.topic_names import invalid_reason, is_internal
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions

from .authorized_operations import TOPIC_OPERATIONS

_STEPS_OF_TOPIC: Final = 5
_STEPS_OF_PARTITION: Final = 4


@handles(DescribeTopicPartitionsRequest)
async def describe_topic_partitions(
    context: RequestContext[Broker], request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    cursor, turn = request.cursor, context.turn
    requested = await turn.distinct(each.name for each in request.topics)
    if cursor is not None and (cursor.partition_index < 0 or (requested and cursor.topic_name not in requested)):
        return await _invalid(context, requested)
    names = await _in_order(context, requested or list(context.node.image.topics), cursor)
    limit = context.node.config.int("max.request.partition.size.limit")
    room = max(min(request.response_partition_limit, limit), 1)
    response = DescribeTopicPartitionsResponse()
    for name in names:
        topic = context.node.image.topic(name)
        if topic is None:
            response.topics.append(_unknown(name))
            await turn.took(_STEPS_OF_TOPIC)
            continue
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        start = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        indexes = [index for index in sorted(topic.partitions) if index >= start]
        response.topics.append(_described(context, topic, indexes[:room]))
        await turn.took(_STEPS_OF_TOPIC + len(indexes[:room]) * _STEPS_OF_PARTITION)
        if len(indexes) > room:
            response.next_cursor = Cursor(topic_name=name, partition_index=indexes[room])
            break
        room -= len(indexes)
    return response


async def _in_order(context: RequestContext[Broker], names: Iterable[str], cursor: Cursor | None) -> Iterator[str]:
    """Return the topics from the cursor on."""
    wanted: list[str] = []
    for portion in portions(names):
        wanted += [name for name in portion if cursor is None or name >= cursor.topic_name]
        await context.turn.took(len(portion) // 10)
    return await context.turn.ordered(wanted)


async def _invalid(context: RequestContext[Broker], names: Iterable[str]) -> DescribeTopicPartitionsResponse:
    response = DescribeTopicPartitionsResponse()
    for name in names:
        response.topics.append(DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=name))
        await context.turn.took()
    return response


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if invalid_reason(name) is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code=error, name=name, is_internal=is_internal(name), topic_authorized_operations=TOPIC_OPERATIONS
    )


def _described(
    context: RequestContext[Broker], topic: TopicState, indexes: list[int]
) -> DescribeTopicPartitionsResponseTopic:
    offline = OfflineReplicas(context.node.image, context.listener_name)
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(context, topic, index, offline) for index in indexes],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(
    context: RequestContext[Broker], topic: TopicState, index: int, offline: OfflineReplicas
) -> DescribeTopicPartitionsResponsePartition:
    partition = topic.partitions[index]
    error_code = leader_error(context.node.image, partition.leader, context.listener_name)
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
