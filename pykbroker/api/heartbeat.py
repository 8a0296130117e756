"""Heartbeat (key 12): a member is alive, and asks whether a rebalance is under way.

Served are versions 0 to 4: 3 brought static members (KIP-345).
"""

from __future__ import annotations

from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.server.network.dispatch import RequestContext, handles

from .group_requests import submit


@handles(HeartbeatRequest)
async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    try:
        response: HeartbeatResponse = await submit(context, request.group_id, request)
    except ApiError as error:
        return HeartbeatResponse(error_code=error.code)
    return response
