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
    image = context.broker.image
    unknown = [_unknown(topic) for topic in request.topics if image.topic(topic.name) is None]
    request.topics = [topic for topic in request.topics if image.topic(topic.name) is not None]
    try:
        response: OffsetDeleteResponse = await submit(context, request.group_id, request)
    except CoordinatorRefused as refused:
        return OffsetDeleteResponse(error_code=refused.error_code)
    if response.error_code == ErrorCode.NONE:
        response.topics += unknown
    return response


def _unknown(topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=partition.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            for partition in topic.partitions
        ],
    )
