"""SaslHandshake (key 17): the choice of a SASL mechanism (KIP-43), where it comes too late or to no SASL listener.

Served are versions 0 and 1. Before a connection has authenticated, and when it does so again, the listener itself
answers (`network.sasl_gate`).
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.sasl import SaslHandshakeRequest, SaslHandshakeResponse
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.node.handlers import handles_on_all_nodes


@handles_on_all_nodes(SaslHandshakeRequest, needs=NOTHING)
async def sasl_handshake(context: RequestContext[ClusterNode], request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
