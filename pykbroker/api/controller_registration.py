"""ControllerRegistration (key 70): a controller makes itself known to the active one (KIP-919).

Served is version 0, on controller listeners. The rules stand in `metadata.brokers`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.brokers import ControllerRegistrationRequest, ControllerRegistrationResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_controllers

from .controller_requests import submit


@handles_on_controllers(ControllerRegistrationRequest, needs=cluster(Operation.CLUSTER_ACTION))
async def controller_registration(
    context: RequestContext[ClusterNode], request: ControllerRegistrationRequest
) -> ControllerRegistrationResponse:
    response: ControllerRegistrationResponse = await submit(context, request)
    return response
