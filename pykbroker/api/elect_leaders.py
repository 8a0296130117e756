"""ElectLeaders (key 43): leaders are elected on request (KIP-460).

Served are versions 0 to 2; 0 knows preferred leaders alone. The rules stand in `metadata.elect_leaders`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.reassignments import ElectLeadersRequest, ElectLeadersResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import MANY_ENTRIES, RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .controller_requests import submit


@handles_on_all_nodes(ElectLeadersRequest, needs=cluster(Operation.ALTER), most_entries=MANY_ENTRIES)
async def elect_leaders(context: RequestContext[ClusterNode], request: ElectLeadersRequest) -> ElectLeadersResponse:
    response: ElectLeadersResponse = await submit(context, request)
    return response
