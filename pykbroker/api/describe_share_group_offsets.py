"""DescribeShareGroupOffsets (key 90): where share groups begin to read, and how far they lag behind (KIP-932).

Served are versions 0 and 1: 1 brought the lag (KIP-1226). What there is no offset of is no error, as in OffsetFetch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pykbroker.groups.common.requests import FindSharePartitions
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.share_groups import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.sharing.persister import UNINITIALIZED_START_OFFSET, UNKNOWN_COUNT, PartitionState, SharePartitionKey

from .authorization import denied
from .group_requests import check_group, submit
from .share_group_requests import MOST_OFFSETS, has_share_groups, latest_offsets

_UNKNOWN_LAG: Final = -1
_STEPS_OF_PARTITION: Final = 8

Indexes = tuple[str, bytes, Sequence[int]]
"""A topic by its name and id, with partitions of it."""


@handles(
    DescribeShareGroupOffsetsRequest,
    needs=names((Operation.DESCRIBE, ResourceType.GROUP), (Operation.DESCRIBE, ResourceType.TOPIC)),
    most_entries=MOST_OFFSETS,
)
async def describe_share_group_offsets(
    context: RequestContext[Broker], request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    response = DescribeShareGroupOffsetsResponse()
    for group in request.groups:
        try:
            response.groups.append(await _describe(context, group))
        except ApiError as error:
            refused = DescribeShareGroupOffsetsResponseGroup(
                group_id=group.group_id, error_code=error.code, error_message=error.message
            )
            response.groups.append(refused)
    return response


async def _describe(
    context: RequestContext[Broker], asked: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    """Raises ApiError."""
    if not has_share_groups(context):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    check_group(context, Operation.DESCRIBE, asked.group_id)
    if asked.topics is None:
        topics, others = await _all_topics(context, asked.group_id), list[DescribeShareGroupOffsetsResponseTopic]()
    else:
        topics, others = await _some_topics(context, asked.topics)
    described = await _described(context, asked.group_id, topics)
    return DescribeShareGroupOffsetsResponseGroup(group_id=asked.group_id, topics=described + others)


async def _all_topics(context: RequestContext[Broker], group_id: str) -> list[Indexes]:
    """Return what of the group is initialized, but for topics that are hidden from the client, or gone. Raises
    ApiError."""
    partitions: Mapping[bytes, frozenset[int]] = await submit(context, group_id, FindSharePartitions(group_id=group_id))
    found = [(context.node.image.topic_by_id(topic_id), indexes) for topic_id, indexes in partitions.items()]
    named = [(topic.name, topic.topic_id, sorted(indexes)) for topic, indexes in found if topic is not None]
    refused = await denied(
        context, Operation.DESCRIBE, ResourceType.TOPIC, [name for name, _, _ in named], is_logged=False
    )
    return [topic for topic in named if topic[0] not in refused]


async def _some_topics(
    context: RequestContext[Broker], asked: Sequence[DescribeShareGroupOffsetsRequestTopic]
) -> tuple[list[Indexes], list[DescribeShareGroupOffsetsResponseTopic]]:
    """Return the topics to look up, and the rows of others: those that are not there, then those that are hidden."""
    refused = await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, [topic.topic_name for topic in asked])
    topics: list[Indexes] = []
    missing: list[DescribeShareGroupOffsetsResponseTopic] = []
    hidden: list[DescribeShareGroupOffsetsResponseTopic] = []
    for topic in asked:
        known = context.node.image.topic(topic.topic_name)
        if topic.topic_name in refused:
            hidden.append(_without_offsets(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif known is None:
            missing.append(_without_offsets(topic, ErrorCode.NONE))
        else:
            topics.append((topic.topic_name, known.topic_id, topic.partitions))
        await context.turn.took(1 + len(topic.partitions))
    return topics, missing + hidden


def _without_offsets(
    topic: DescribeShareGroupOffsetsRequestTopic, error: ErrorCode
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=index,
                start_offset=UNINITIALIZED_START_OFFSET,
                error_code=error,
                error_message=error.description if error else None,
            )
            for index in topic.partitions
        ],
    )


async def _described(
    context: RequestContext[Broker], group_id: str, topics: Sequence[Indexes]
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    keys = (SharePartitionKey(group_id, topic_id, index) for _, topic_id, indexes in topics for index in indexes)
    states = iter(await context.node.groups.share_states.read_summaries(keys))
    by_topic = [(name, topic_id, [next(states) for _ in indexes]) for name, topic_id, indexes in topics]
    wanted = {(name, each.key.partition) for name, _, row in by_topic for each in row if _has_lag(each)}
    ends = await latest_offsets(context, wanted) if wanted else {}
    described = []
    for name, topic_id, row in by_topic:
        partitions = [_partition(each, ends.get((name, each.key.partition))) for each in row]
        described.append(
            DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id, partitions=partitions)
        )
        await context.turn.took(1 + len(row) * _STEPS_OF_PARTITION)
    return described


def _has_lag(state: PartitionState) -> bool:
    """Tell whether the state says enough to reckon the lag."""
    is_known = state.start_offset != UNINITIALIZED_START_OFFSET and state.delivery_complete_count != UNKNOWN_COUNT
    return not state.error_code and is_known


def _partition(state: PartitionState, end: int | ErrorCode | None) -> DescribeShareGroupOffsetsResponsePartition:
    """The row of a partition. end: its high watermark, or why nobody knows it; None where it does not matter."""
    index = state.key.partition
    if state.error_code:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, start_offset=UNINITIALIZED_START_OFFSET, lag=_UNKNOWN_LAG
        )
    if isinstance(end, ErrorCode):
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, error_code=end, error_message=end.description
        )
    lag = _UNKNOWN_LAG if end is None else end - state.start_offset - state.delivery_complete_count
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index, start_offset=state.start_offset, leader_epoch=state.leader_epoch, lag=lag
    )
