"""UnregisterController (key 94): a controller that is gone for good is taken out of the cluster.

Served is version 0, with effect from metadata.version 33 (4.4-IV2) on. The rules stand in `metadata.brokers`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.brokers import UnregisterControllerRequest, UnregisterControllerResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .controller_requests import submit


@handles_on_all_nodes(UnregisterControllerRequest, needs=cluster(Operation.ALTER))
async def unregister_controller(
    context: RequestContext[ClusterNode], request: UnregisterControllerRequest
) -> UnregisterControllerResponse:
    response: UnregisterControllerResponse = await submit(context, request)
    return response
