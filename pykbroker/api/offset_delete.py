"""OffsetDelete (key 47): forget committed offsets of topics that the group no longer reads (KIP-496)."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from pykbroker.server.coordinator_driver import CoordinatorRefused
from pykbroker.server.dispatch import RequestContext, handles

from .group_requests import submit


@handles(OffsetDeleteRequest)
async def offset_delete(context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """The coordinator is asked even where nothing is left to delete: whether there is such a group is its answer."""
    asked = request.topics
    answers: dict[str, list[OffsetDeleteResponsePartition]] = {}
    for topic in asked:
        answers.setdefault(topic.name, []).extend(_take_out_unknown(context, topic))
    request.topics = [topic for topic in asked if topic.partitions]
    try:
        response: OffsetDeleteResponse = await submit(context, request.group_id, request)
    except CoordinatorRefused as refusal:
        return OffsetDeleteResponse(error_code=refusal.error_code)
    if response.error_code != ErrorCode.NONE:
        return response
    for deleted in response.topics:
        answers[deleted.name] += deleted.partitions
    topics = [OffsetDeleteResponseTopic(name=name, partitions=answer) for name, answer in answers.items() if answer]
    return OffsetDeleteResponse(topics=topics)


def _take_out_unknown(context: RequestContext, topic: OffsetDeleteRequestTopic) -> list[OffsetDeleteResponsePartition]:
    known = context.broker.image.topic(topic.name)
    existing = {} if known is None else known.partitions
    unknown = [partition.partition_index for partition in topic.partitions if partition.partition_index not in existing]
    topic.partitions = [partition for partition in topic.partitions if partition.partition_index in existing]
    return [
        OffsetDeleteResponsePartition(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        for index in unknown
    ]
