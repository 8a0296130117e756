"""SaslAuthenticate (key 36): one step of a SASL exchange (KIP-152), where it comes too late or to no SASL listener.

Served are versions 0 to 2. Before a connection has authenticated, and when it does so again, the listener itself
answers (`network.sasl_gate`).
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes

_TOO_LATE = "SaslAuthenticate request received after successful authentication"


@handles_on_all_nodes(SaslAuthenticateRequest, needs=NOTHING)
async def sasl_authenticate(
    context: RequestContext[ClusterNode], request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_TOO_LATE)
