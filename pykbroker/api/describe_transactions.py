"""DescribeTransactions (key 65): state, producer and partitions of transactional ids (KIP-664).

Served is version 0.
"""

from __future__ import annotations

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .authorization import denied, is_allowed
from .transaction_requests import submit

_STEPS_OF_TRANSACTION = 20


@handles(
    DescribeTransactionsRequest,
    needs=names((Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID), (Operation.DESCRIBE, ResourceType.TOPIC)),
)
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
    if not is_allowed(context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        denial = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return [DescribeTransactionsResponseTransactionState(transactional_id=transactional_id, error_code=denial)]
    one = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    try:
        described: DescribeTransactionsResponse = await submit(context, transactional_id, one)
    except ApiError as error:
        return [DescribeTransactionsResponseTransactionState(transactional_id=transactional_id, error_code=error.code)]
    for state in described.transaction_states:
        hidden = await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, (each.topic for each in state.topics))
        if hidden:
            state.topics = [each for each in state.topics if each.topic not in hidden]
    return described.transaction_states
