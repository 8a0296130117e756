"""AlterConfigs (key 33): the whole configuration of topics and brokers is replaced (KIP-133).

Served are versions 0 to 2, which differ in their encoding only. The rules are the controller's
(`metadata.legacy_configs`); a broker checks brokers' keys itself, and does not
speak for another one, as Kafka's.
"""

from __future__ import annotations

from pykbroker.protocol.messages.configs import AlterConfigsRequest, AlterConfigsResponse
from pykbroker.server.network.dispatch import MANY_ENTRIES, RequestContext, handles

from .controller_requests import submit
from .refused_configs import take_out_refused


@handles(AlterConfigsRequest, listeners=frozenset({"broker", "controller"}), most_entries=MANY_ENTRIES)
async def alter_configs(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    if context.listener.kind == "controller":
        response: AlterConfigsResponse = await submit(context, request)
        return response
    refused = take_out_refused(request.resources, context.broker.node_id)
    response = await submit(context, request)
    response.responses += refused
    return response
