"""OffsetFetch (key 9): how far groups have read.

Served are versions 1 to 10: 2 brought all topics of a group, 5 leader epochs (KIP-320), 7 stable offsets (KIP-447),
8 several groups (KIP-709), 10 topic ids instead of names.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from pykbroker.server.coordinator_driver import CoordinatorRefused
from pykbroker.server.dispatch import RequestContext, handles

from .group_requests import submit

_ERROR_OF_GROUP_SINCE = 2
_GROUPS_SINCE = 8
_TOPIC_IDS_SINCE = 10
_NO_OFFSET = -1


@handles(OffsetFetchRequest)
async def offset_fetch(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    if context.header.api_version >= _GROUPS_SINCE:
        groups = [await _fetch(context, group, request.require_stable) for group in request.groups]
        return OffsetFetchResponse(groups=groups)
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    asked = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    return _of_one_group(context, asked, await _fetch(context, asked, request.require_stable))


async def _fetch(
    context: RequestContext, asked: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    by_id = context.header.api_version >= _TOPIC_IDS_SINCE
    unknown: list[OffsetFetchResponseTopics] = []
    if by_id and asked.topics is not None:
        unknown = _resolve_names(context, asked)
    request = OffsetFetchRequest(groups=[asked], require_stable=require_stable)
    try:
        response: OffsetFetchResponse = await submit(context, asked.group_id, request)
    except CoordinatorRefused as refused:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=refused.error_code)
    (group,) = response.groups
    if by_id and asked.topics is None:
        _add_ids(context, group)
    group.topics += unknown
    return group


def _resolve_names(context: RequestContext, asked: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Leaves in `asked` the topics that exist, with their names; the answers for the others."""
    known, unknown = [], []
    for topic in asked.topics or []:
        found = context.broker.image.topic_by_id(topic.topic_id)
        if found is None:
            unknown.append(_unknown_topic(topic))
        else:
            topic.name = found.name
            known.append(topic)
    asked.topics = known
    return unknown


def _unknown_topic(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=_NO_OFFSET,
                metadata="",
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
            )
            for index in topic.partition_indexes
        ],
    )


def _add_ids(context: RequestContext, group: OffsetFetchResponseGroup) -> None:
    """Offsets of topics that were deleted cannot be named by an id, and are left out."""
    topics = []
    for topic in group.topics:
        known = context.broker.image.topic(topic.name)
        if known is not None:
            topic.topic_id = known.topic_id
            topics.append(topic)
    group.topics = topics


def _of_one_group(
    context: RequestContext, asked: OffsetFetchRequestGroup, group: OffsetFetchResponseGroup
) -> OffsetFetchResponse:
    """The response of versions 1 to 7; version 1 has no place for the group's error but its partitions."""
    if group.error_code and context.header.api_version < _ERROR_OF_GROUP_SINCE:
        return OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=[_refused_partition(index, group.error_code) for index in topic.partition_indexes],
                )
                for topic in asked.topics or []
            ]
        )
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)


def _refused_partition(index: int, error_code: int) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=index, committed_offset=_NO_OFFSET, metadata="", error_code=error_code
    )
