"""AlterClientQuotas (key 49): quotas of users, client ids and addresses are set and taken away (KIP-546).

Served are versions 0 and 1, which do not differ in what they say. The rules are the controller's
(`metadata.client_quotas`); the answer comes when this node throttles by what it says.
"""

from __future__ import annotations

from pykbroker.protocol.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import MANY_ENTRIES, RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .controller_requests import submit


@handles_on_all_nodes(AlterClientQuotasRequest, needs=cluster(Operation.ALTER_CONFIGS), most_entries=MANY_ENTRIES)
async def alter_client_quotas(
    context: RequestContext[ClusterNode], request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    response: AlterClientQuotasResponse = await submit(context, request)
    return response
