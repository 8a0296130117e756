"""OffsetCommit (key 8): store how far a group has read.

Served are versions 2 to 10: 5 dropped the retention time (KIP-211), 6 brought leader epochs (KIP-320), 7 static members
(KIP-345), 10 topic ids instead of names.
"""

from __future__ import annotations

from pykbroker.groups.offset_requests import refused_commit
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

from .group_requests import submit

_TOPIC_IDS_SINCE = 10


@handles(OffsetCommitRequest)
async def offset_commit(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Topics that are not there are answered here; the rest goes to the coordinator, and the order stays."""
    asked = request.topics
    refusals = [_identify(context, topic) for topic in asked]
    request.topics = [topic for topic, refusal in zip(asked, refusals, strict=True) if refusal is ErrorCode.NONE]
    committed: list[OffsetCommitResponseTopic] = []
    if request.topics:
        committed = (await _commit(context, request)).topics
    answers = iter(committed)
    topics = [
        next(answers) if refusal is ErrorCode.NONE else _refused(topic, refusal)
        for topic, refusal in zip(asked, refusals, strict=True)
    ]
    return OffsetCommitResponse(topics=topics)


def _identify(context: RequestContext, topic: OffsetCommitRequestTopic) -> ErrorCode:
    """Adds to the name the id, or to the id the name: both are stored."""
    image = context.broker.image
    if context.header.api_version >= _TOPIC_IDS_SINCE:
        known = image.topic_by_id(topic.topic_id)
        if known is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
    else:
        known = image.topic(topic.name)
        if known is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic.name, topic.topic_id = known.name, known.topic_id
    return ErrorCode.NONE


async def _commit(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    try:
        response: OffsetCommitResponse = await submit(context, request.group_id, request)
    except CoordinatorRefused as refused:
        return refused_commit(request, refused.error_code)
    return response


def _refused(topic: OffsetCommitRequestTopic, error_code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error_code)
            for partition in topic.partitions
        ],
    )
