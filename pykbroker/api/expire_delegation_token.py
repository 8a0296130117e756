"""ExpireDelegationToken (key 40): a token expires earlier, or is removed at once (KIP-48).

Served are versions 1 and 2. The owner may, and the renewers; no other right helps. The rules are the controller's
(`metadata.delegation_tokens`).
"""

from __future__ import annotations

from pykbroker.metadata.delegation_tokens import ERROR_TIMESTAMP
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.delegation_tokens import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

from .controller_requests import submit
from .delegation_token_requests import allows_token_requests


@handles_on_all_nodes(ExpireDelegationTokenRequest, needs=NOTHING)
async def expire_delegation_token(
    context: RequestContext[ClusterNode], request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    if not allows_token_requests(context):
        return ExpireDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=ERROR_TIMESTAMP
        )
    response: ExpireDelegationTokenResponse = await submit(context, request)
    return response
