"""EndTxn (key 26): commit or abort a producer's transaction.

Served are versions 0 to 5: 2 may be answered with PRODUCER_FENCED, 4 with TRANSACTION_ABORTABLE, and with 5 the
producer gets a new epoch for its next transaction (KIP-890). The answer comes when the decision is committed; markers
in partitions that are led here are there by then.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.messages.transactions import EndTxnRequest, EndTxnResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .transaction_requests import check_transactional_id, submit_with_producer_id


@handles(EndTxnRequest, needs=names((Operation.WRITE, ResourceType.TRANSACTIONAL_ID)))
async def end_txn(context: RequestContext[Broker], request: EndTxnRequest) -> EndTxnResponse:
    try:
        check_transactional_id(context, request.transactional_id)
        response: EndTxnResponse = await submit_with_producer_id(context, request.transactional_id, request)
    except ApiError as error:
        return EndTxnResponse(error_code=error.code)
    return response
