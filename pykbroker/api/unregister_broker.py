"""UnregisterBroker (key 64): a broker that is gone for good is taken out of the cluster.

Served is version 0. The rules stand in `metadata.brokers`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.brokers import UnregisterBrokerRequest, UnregisterBrokerResponse
from pykbroker.server.network.dispatch import RequestContext, handles

from .controller_requests import submit


@handles(UnregisterBrokerRequest, listeners=frozenset({"broker", "controller"}))
async def unregister_broker(context: RequestContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    response: UnregisterBrokerResponse = await submit(context, request)
    return response
