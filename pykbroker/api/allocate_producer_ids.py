"""AllocateProducerIds (key 67): a broker gets a block of producer ids to give out (KIP-730).

Served is version 0, on controller listeners. The rules stand in `metadata.producer_ids`.
"""

from __future__ import annotations

from pykbroker.protocol.messages.brokers import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from pykbroker.server.network.dispatch import RequestContext, handles

from .controller_requests import submit


@handles(AllocateProducerIdsRequest, listeners=frozenset({"controller"}))
async def allocate_producer_ids(
    context: RequestContext, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    response: AllocateProducerIdsResponse = await submit(context, request)
    return response
