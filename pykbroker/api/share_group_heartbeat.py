"""ShareGroupHeartbeat (key 76): a member of a share group joins, stays, and leaves (KIP-932). Served is version 1."""

from __future__ import annotations

from typing import Final

from pykbroker.groups.common.requests import MOST_NAMES
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .authorization import denied
from .group_requests import check_group, submit_heartbeat
from .share_group_requests import has_share_groups

_MOST_CHARACTERS: Final = 36
"""How long a member's id may be: as a UUID in hexadecimal."""


@handles(
    ShareGroupHeartbeatRequest,
    needs=names((Operation.READ, ResourceType.GROUP), (Operation.DESCRIBE, ResourceType.TOPIC)),
)
async def share_group_heartbeat(
    context: RequestContext[Broker], request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    if not has_share_groups(context):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    groups = context.node.groups
    try:
        check_group(context, Operation.READ, request.group_id)
        if not 0 < len(request.member_id) <= _MOST_CHARACTERS:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        topics = (request.subscribed_topic_names or ())[: MOST_NAMES + 1]
        if await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, topics):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        # Looked up here, in turns, what the group's step is about to ask is answered from memory.
        await context.turn.through(groups.metadata_hash.learn(topics))
        if groups.metadata_hash.has_forgotten_many:
            await context.turn.through(groups.metadata_hash.learn_again())
        response: ShareGroupHeartbeatResponse = await submit_heartbeat(context, request.group_id, request)
    except ApiError as error:
        return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
    return response
