"""AlterShareGroupOffsets (key 91): set the start offsets of a share group that has no members (KIP-932).

Served is version 0. A group that is not there is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pykbroker.groups.common.requests import AlterShareOffsets
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from pykbroker.protocol.schema import NO_UUID
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.sharing.persister import Outcome

from .authorization import denied
from .group_requests import check_group, group_context
from .share_group_requests import MOST_OFFSETS, has_share_groups

if TYPE_CHECKING:
    from pykbroker.groups.share.state_changes import ShareAlteration

_STEPS_OF_PARTITION: Final = 4


@handles(
    AlterShareGroupOffsetsRequest,
    needs=names((Operation.READ, ResourceType.GROUP), (Operation.READ, ResourceType.TOPIC)),
    most_entries=MOST_OFFSETS,
)
async def alter_share_group_offsets(
    context: RequestContext[Broker], request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    """A topic that is named twice counts as it is named last, and so does a partition."""
    try:
        if not has_share_groups(context):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        check_group(context, Operation.READ, request.group_id)
        if not request.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        return await _alter(context, request)
    except ApiError as error:
        return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=str(error))


async def _alter(
    context: RequestContext[Broker], request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    """Raises ApiError."""
    topics = {topic.topic_name: topic for topic in request.topics}
    refused = await denied(context, Operation.READ, ResourceType.TOPIC, topics)
    rows: list[AlterShareGroupOffsetsResponseTopic] = []
    wanted: dict[str, Mapping[int, int]] = {}
    for name, topic in topics.items():
        if name in refused:
            rows.append(_refused(context, topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif context.node.image.topic(name) is None:
            rows.append(_refused(context, topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            wanted[name] = {each.partition_index: each.start_offset for each in topic.partitions}
        await context.turn.took(1 + len(topic.partitions) * _STEPS_OF_PARTITION)
    asked = AlterShareOffsets(group_id=request.group_id, topics=wanted)
    begun, outcomes = await context.node.groups.share_states.alter(asked, group_context(context))
    if begun.error_code:
        raise ApiError(begun.error_code, begun.error_message)
    return AlterShareGroupOffsetsResponse(responses=rows + _altered(wanted, begun, outcomes))


def _refused(
    context: RequestContext[Broker], topic: AlterShareGroupOffsetsRequestTopic, error: ErrorCode
) -> AlterShareGroupOffsetsResponseTopic:
    known = context.node.image.topic(topic.topic_name)
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        topic_id=NO_UUID if known is None else known.topic_id,
        partitions=[_row(each.partition_index, error) for each in topic.partitions],
    )


def _altered(
    wanted: Mapping[str, Mapping[int, int]], begun: ShareAlteration, outcomes: list[Outcome]
) -> list[AlterShareGroupOffsetsResponseTopic]:
    failed = {(each.key.topic_id, each.key.partition): each for each in outcomes if each.error_code}
    rows = []
    for name, offsets in wanted.items():
        topic_id = begun.topic_ids.get(name, NO_UUID)
        partitions = []
        for index in offsets:
            outcome = failed.get((topic_id, index))
            if index in begun.unknown[name]:
                partitions.append(_row(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            elif outcome is not None:
                partitions.append(_row(index, outcome.error_code, outcome.error_message))
            else:
                partitions.append(_row(index, ErrorCode.NONE))
        rows.append(AlterShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id, partitions=partitions))
    return rows


def _row(index: int, error: ErrorCode, message: str | None = None) -> AlterShareGroupOffsetsResponsePartition:
    words = message or (error.description if error else None)
    return AlterShareGroupOffsetsResponsePartition(partition_index=index, error_code=error, error_message=words)
