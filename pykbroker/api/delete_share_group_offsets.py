"""DeleteShareGroupOffsets (key 92): forget a share group's state of topics, where it has no members (KIP-932).

Served is version 0. A member that subscribes to the topic later begins as in a new group.
"""

from __future__ import annotations

from typing import Final

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.share_groups import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .authorization import denied
from .group_requests import check_group, group_context
from .share_group_requests import MOST_OFFSETS, has_share_groups

_STEPS_OF_TOPIC: Final = 5


@handles(
    DeleteShareGroupOffsetsRequest,
    needs=names((Operation.DELETE, ResourceType.GROUP), (Operation.READ, ResourceType.TOPIC)),
    most_entries=MOST_OFFSETS,
)
async def delete_share_group_offsets(
    context: RequestContext[Broker], request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    """A topic that is named twice is answered once."""
    try:
        if not has_share_groups(context):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        check_group(context, Operation.DELETE, request.group_id)
        if not request.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        return await _delete(context, request)
    except ApiError as error:
        return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=str(error))


async def _delete(
    context: RequestContext[Broker], request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    """Raises ApiError."""
    asked = await context.turn.distinct([topic.topic_name for topic in request.topics])
    refused = await denied(context, Operation.READ, ResourceType.TOPIC, asked)
    rows = [_row(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in asked if name in refused]
    wanted = [name for name in asked if name not in refused]
    states = context.node.groups.share_states
    begun, errors = await states.delete_offsets(request.group_id, wanted, group_context(context))
    if begun.error_code:
        raise ApiError(begun.error_code, begun.error_message)
    for topic_id, error_code in errors.items():
        rows.append(_row(begun.names[topic_id], error_code, topic_id=topic_id))
        await context.turn.took(_STEPS_OF_TOPIC)
    for name, error in begun.refused.items():
        rows.append(_row(name, error.code, str(error)))
        await context.turn.took(_STEPS_OF_TOPIC)
    return DeleteShareGroupOffsetsResponse(responses=rows)


def _row(
    name: str, error: ErrorCode, message: str | None = None, topic_id: bytes | None = None
) -> DeleteShareGroupOffsetsResponseTopic:
    words = message or (error.description if error else None)
    row = DeleteShareGroupOffsetsResponseTopic(topic_name=name, error_code=error, error_message=words)
    if topic_id is not None:
        row.topic_id = topic_id
    return row
