"""BrokerRegistration (key 62): a broker joins its cluster, fenced at first, and gets its epoch (KIP-631).

Served are versions 0 to 4, on controller listeners: 2 brought log directories (KIP-858), 3 the previous epoch
(KIP-966). The rules stand in `metadata.brokers`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.brokers import BrokerRegistrationRequest, BrokerRegistrationResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_controllers

from .controller_requests import submit


@handles_on_controllers(BrokerRegistrationRequest, needs=cluster(Operation.CLUSTER_ACTION))
async def broker_registration(
    context: RequestContext[ClusterNode], request: BrokerRegistrationRequest
) -> BrokerRegistrationResponse:
    response: BrokerRegistrationResponse = await submit(context, request)
    return response
