"""Heartbeat (key 12): a member is alive, and asks whether a rebalance is under way.

Served are versions 0 to 4: 3 brought static members (KIP-345).
"""

from __future__ import annotations

from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .group_requests import check_group, submit


@handles(HeartbeatRequest, needs=names((Operation.READ, ResourceType.GROUP)))
async def heartbeat(context: RequestContext[Broker], request: HeartbeatRequest) -> HeartbeatResponse:
    try:
        check_group(context, Operation.READ, request.group_id)
        response: HeartbeatResponse = await submit(context, request.group_id, request)
    except ApiError as error:
        return HeartbeatResponse(error_code=error.code)
    return response
