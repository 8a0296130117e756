"""ElectLeaders (key 43): leaders are elected on request (KIP-460).

Served are versions 0 to 2; 0 knows preferred leaders alone. The rules stand in `metadata.elect_leaders`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.reassignments import ElectLeadersRequest, ElectLeadersResponse
from pykbroker.server.network.dispatch import MANY_ENTRIES, RequestContext, handles

from .controller_requests import submit


@handles(ElectLeadersRequest, listeners=frozenset({"broker", "controller"}), most_entries=MANY_ENTRIES)
async def elect_leaders(context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    response: ElectLeadersResponse = await submit(context, request)
    return response
