"""PushTelemetry (key 72): metrics of a client, in OpenTelemetry's form (KIP-714).

Served is version 0, where the node shows what clients push; elsewhere nobody is offered it.
"""

from __future__ import annotations

from pykbroker.protocol.messages.telemetry import PushTelemetryRequest, PushTelemetryResponse
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles


@handles(PushTelemetryRequest, needs=NOTHING)
async def push_telemetry(context: RequestContext[Broker], request: PushTelemetryRequest) -> PushTelemetryResponse:
    telemetry = context.node.telemetry
    assert telemetry is not None, "it is not offered then"
    return await telemetry.push(context, request)
