"""AlterUserScramCredentials (key 51): SCRAM credentials of users are set and deleted (KIP-554).

Served is version 0. The rules are the controller's (`metadata.scram_credentials`).
"""

from __future__ import annotations

from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import cluster
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .controller_requests import submit


@handles_on_all_nodes(AlterUserScramCredentialsRequest, needs=cluster(Operation.ALTER))
async def alter_user_scram_credentials(
    context: RequestContext[ClusterNode], request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    response: AlterUserScramCredentialsResponse = await submit(context, request)
    return response
