"""AllocateProducerIds (key 67): a broker gets a block of producer ids to give out (KIP-730).

Served is version 0, on controller listeners. The rules stand in `metadata.producer_ids`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.brokers import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_controllers

from .controller_requests import submit


@handles_on_controllers(AllocateProducerIdsRequest, needs=cluster(Operation.CLUSTER_ACTION))
async def allocate_producer_ids(
    context: RequestContext[ClusterNode], request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    response: AllocateProducerIdsResponse = await submit(context, request)
    return response
