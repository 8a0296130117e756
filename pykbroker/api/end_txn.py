"""EndTxn (key 26): commit or abort a producer's transaction.

Served are versions 0 to 5: 2 may be answered with PRODUCER_FENCED, 4 with TRANSACTION_ABORTABLE, and with 5 the
producer gets a new epoch for its next transaction (KIP-890). The answer comes when the decision is committed; markers
in partitions that are led here are there by then.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.messages.transactions import EndTxnRequest, EndTxnResponse
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .transaction_requests import submit_with_producer_id


@handles(EndTxnRequest)
async def end_txn(context: RequestContext[Broker], request: EndTxnRequest) -> EndTxnResponse:
    try:
        response: EndTxnResponse = await submit_with_producer_id(context, request.transactional_id, request)
    except ApiError as error:
        return EndTxnResponse(error_code=error.code)
    return response
