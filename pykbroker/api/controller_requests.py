"""Requests that the active controller carries out.

A broker's listener forwards them to the active controller, wherever that runs. A controller's listener answers them
itself, with NOT_CONTROLLER where that controller is not active.
"""

from __future__ import annotations

from typing import Any

from pykbroker.metadata.error_responses import error_response
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.schema import Message
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import ClusterNode


async def submit(context: RequestContext[ClusterNode], request: Message) -> Any:
    """The response. On a broker with the active controller in its process, this node's image has its effect already."""
    node = context.node
    if context.listener.kind == "broker":
        return await node.controller_channel.forward(context, request)
    if node.controller is None or not node.controller.is_active:
        return await context.turn.through(error_response(request, ApiError(ErrorCode.NOT_CONTROLLER)))
    return await node.controller.submit(request, until_applied=False, client=context)
