"""GetTelemetrySubscriptions (key 71): which metrics this broker wants from a client (KIP-714).

Served is version 0, where the node shows what clients push; elsewhere nobody is offered it.
"""

from __future__ import annotations

from pykbroker.protocol.messages.telemetry import GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles


@handles(GetTelemetrySubscriptionsRequest, needs=NOTHING)
async def get_telemetry_subscriptions(
    context: RequestContext[Broker], request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    telemetry = context.node.telemetry
    assert telemetry is not None, "it is not offered then"
    return await telemetry.subscribe(context, request)
