"""OffsetCommit (key 8): store how far a group has read.

Served are versions 2 to 10: 5 dropped the retention time (KIP-211), 6 brought leader epochs (KIP-320), 7 static members
(KIP-345), 10 topic ids instead of names.
"""

from __future__ import annotations

from pykbroker.groups.offset_commits import refused_commit
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pykbroker.server.coordinator_driver import CoordinatorRefused
from pykbroker.server.dispatch import RequestContext, handles

from .group_requests import submit, take_out_unknown

_TOPIC_IDS_SINCE = 10


@handles(OffsetCommitRequest)
async def offset_commit(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """What is not there is answered here, the rest by the coordinator; topics are answered in the order asked."""
    asked = request.topics
    refused = [_take_out_unknown(context, topic) for topic in asked]
    request.topics = [topic for topic in asked if topic.partitions]
    answered = iter((await _commit(context, request)).topics if request.topics else [])
    topics = []
    for topic, refused_partitions in zip(asked, refused, strict=True):
        answer = next(answered) if topic.partitions else OffsetCommitResponseTopic(name=topic.name)
        answer.topic_id = topic.topic_id
        answer.partitions = answer.partitions + refused_partitions
        if answer.partitions:
            topics.append(answer)
    return OffsetCommitResponse(topics=topics)


def _take_out_unknown(context: RequestContext, topic: OffsetCommitRequestTopic) -> list[OffsetCommitResponsePartition]:
    """Answers what does not exist. Adds to the name the id, or to the id the name: both are stored."""
    image = context.broker.image
    if context.header.api_version >= _TOPIC_IDS_SINCE:
        known, error_code = image.topic_by_id(topic.topic_id), ErrorCode.UNKNOWN_TOPIC_ID
    else:
        known, error_code = image.topic(topic.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if known is not None:
        topic.name, topic.topic_id = known.name, known.topic_id
        error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    unknown = take_out_unknown(topic.partitions, known)
    return [OffsetCommitResponsePartition(partition_index=each, error_code=error_code) for each in unknown]


async def _commit(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    try:
        response: OffsetCommitResponse = await submit(context, request.group_id, request)
    except CoordinatorRefused as refused:
        return refused_commit(request, refused.error_code)
    return response
