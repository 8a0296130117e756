"""DescribeTransactions (key 65): state, producer and partitions of transactional ids (KIP-664).

Served is version 0.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
)
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .transaction_requests import submit

_STEPS_OF_TRANSACTION = 20


@handles(DescribeTransactionsRequest)
async def describe_transactions(
    context: RequestContext[Broker], request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    answer = DescribeTransactionsResponse()
    for transactional_id in request.transactional_ids:
        answer.transaction_states += await _describe(context, transactional_id)
        await context.turn.took(_STEPS_OF_TRANSACTION)
    return answer


async def _describe(
    context: RequestContext[Broker], transactional_id: str
) -> list[DescribeTransactionsResponseTransactionState]:
    one = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    try:
        described: DescribeTransactionsResponse = await submit(context, transactional_id, one)
    except ApiError as error:
        return [DescribeTransactionsResponseTransactionState(transactional_id=transactional_id, error_code=error.code)]
    return described.transaction_states
