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
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions

from .authorization import authorized_operations, denied

_STEPS_OF_TOPIC: Final = 5
_STEPS_OF_PARTITION: Final = 4


@handles(DescribeTopicPartitionsRequest, needs=names((Operation.DESCRIBE, ResourceType.TOPIC)))
async def describe_topic_partitions(
    context: RequestContext[Broker], request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    cursor, turn = request.cursor, context.turn
    requested = await turn.distinct(each.name for each in request.topics)
    if cursor is not None and (cursor.partition_index < 0 or (requested and cursor.topic_name not in requested)):
        return await _invalid(context, request)
    wanted = requested or list(context.node.image.topics)
    hidden = await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, wanted, is_logged=bool(requested))
    names = await _in_order(context, [name for name in wanted if name not in hidden] if hidden else wanted, cursor)
    limit = context.node.config.int("max.request.partition.size.limit")
    room = max(min(request.response_partition_limit, limit), 1)
    response = DescribeTopicPartitionsResponse()
    if requested and hidden:
        for name in await _in_order(context, hidden, cursor):
            response.topics.append(_denied(name))
            await turn.took()
    for name in names:
        topic = context.node.image.topic(name)
        if topic is None:
            response.topics.append(_unknown(context, name))
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


async def _invalid(
    context: RequestContext[Broker], request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """A topic that is named twice is answered twice, as in Kafka."""
    response = DescribeTopicPartitionsResponse()
    for each in request.topics:
        invalid = DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=each.name)
        response.topics.append(invalid)
        await context.turn.took()
    return response


def _denied(name: str) -> DescribeTopicPartitionsResponseTopic:
    """The answer tells nothing of the topic, not even whether it exists."""
    return DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)


def _unknown(context: RequestContext[Broker], name: str) -> DescribeTopicPartitionsResponseTopic:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if invalid_reason(name) is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code=error,
        name=name,
        is_internal=is_internal(name),
        topic_authorized_operations=authorized_operations(context, ResourceType.TOPIC, name),
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
        topic_authorized_operations=authorized_operations(context, ResourceType.TOPIC, topic.name),
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
