"""Heartbeat (key 12): a member is alive, and asks whether a rebalance is under way.

Served are versions 0 to 4: 3 brought static members (KIP-345).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .authorization import is_allowed
from .group_requests import begin, check_group, submit

_UNKNOWN: Final = ErrorCode.UNKNOWN_SERVER_ERROR


def begin_heartbeat(
    context: RequestContext[Broker], request: HeartbeatRequest, give: Callable[[Message], None]
) -> bool:
    """Begin a heartbeat of a client that may read as a member of the group (`Begin`)."""
    if not is_allowed(context, Operation.READ, ResourceType.GROUP, request.group_id, is_logged=False):
        return False

    def then(response: Any, error: Exception | None) -> None:
        if error is not None:
            response = HeartbeatResponse(error_code=error.code if isinstance(error, ApiError) else _UNKNOWN)
        give(response)

    begin(context, request.group_id, request, then)
    return True


@handles(HeartbeatRequest, needs=names((Operation.READ, ResourceType.GROUP)), begin=begin_heartbeat)
async def heartbeat(context: RequestContext[Broker], request: HeartbeatRequest) -> HeartbeatResponse:
    try:
        check_group(context, Operation.READ, request.group_id)
        response: HeartbeatResponse = await submit(context, request.group_id, request)
    except ApiError as error:
        return HeartbeatResponse(error_code=error.code)
    return response
