"""CreateAcls (key 30): entries of access control lists (KIP-11).

Served are versions 1 to 3: 1 brought patterns (KIP-290), 3 users as resources (KIP-373). The rules are the controller's
(`metadata.access_control`). The answer comes when this node's authorizer knows the entries.
"""

from __future__ import annotations

from typing import cast

from pykbroker.metadata.error_responses import error_response
from pykbroker.protocol.messages.acls import CreateAclsRequest, CreateAclsResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .acl_requests import SECURITY_DISABLED, check_known
from .controller_requests import submit


@handles_on_all_nodes(CreateAclsRequest, needs=cluster(Operation.ALTER))
async def create_acls(context: RequestContext[ClusterNode], request: CreateAclsRequest) -> CreateAclsResponse:
    await context.turn.through(check_known(request))
    if context.node.authorizer is None:
        refused = await context.turn.through(error_response(request, SECURITY_DISABLED))
        return cast(CreateAclsResponse, refused)
    response: CreateAclsResponse = await submit(context, request)
    return response
