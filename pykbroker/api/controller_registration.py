"""ControllerRegistration (key 70): a controller makes itself known to the active one (KIP-919).

Served is version 0, on controller listeners. The rules stand in `metadata.brokers`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.brokers import ControllerRegistrationRequest, ControllerRegistrationResponse
from pykbroker.server.network.dispatch import RequestContext, handles

from .controller_requests import submit


@handles(ControllerRegistrationRequest, listeners=frozenset({"controller"}))
async def controller_registration(
    context: RequestContext, request: ControllerRegistrationRequest
) -> ControllerRegistrationResponse:
    response: ControllerRegistrationResponse = await submit(context, request)
    return response
