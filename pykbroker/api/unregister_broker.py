"""UnregisterBroker (key 64): a broker that is gone for good is taken out of the cluster.

Served is version 0. The rules stand in `metadata.brokers`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.brokers import UnregisterBrokerRequest, UnregisterBrokerResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .controller_requests import submit


@handles_on_all_nodes(UnregisterBrokerRequest, needs=cluster(Operation.ALTER))
async def unregister_broker(
    context: RequestContext[ClusterNode], request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    response: UnregisterBrokerResponse = await submit(context, request)
    return response
