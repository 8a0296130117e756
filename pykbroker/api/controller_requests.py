"""What is for the controller: from a broker's listener it goes to the active one, wherever that is; a controller's
listener answers itself, and if it is not active says so.
"""

from __future__ import annotations

from typing import Any

from pykbroker.metadata.refusals import refuse
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.schema import Message
from pykbroker.server.network.dispatch import RequestContext


async def submit(context: RequestContext, request: Message) -> Any:
    """The response. On a broker with the active controller in its process, this node's image has its effect already."""
    broker = context.broker
    if context.listener.kind == "broker":
        return await broker.controller_channel.forward(context, request)
    if broker.controller is None or not broker.controller.is_active:
        refusal = refuse(request, ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER.description)
        return await context.turn.through(refusal)
    return await broker.controller.submit(request, until_applied=False)
