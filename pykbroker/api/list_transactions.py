"""ListTransactions (key 66): the transactional ids of this coordinator (KIP-664).

Served are versions 0 to 2: 1 brought a filter by duration (KIP-994), 2 one by a regular expression (KIP-1152).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.transaction_admin import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions

from .authorization import denied
from .transaction_requests import transaction_context

if TYPE_CHECKING:
    from pykbroker.transactions.administration import TransactionFilter

_IDS_AT_ONCE = 500
_STEPS_OF_ID = 3


@handles(ListTransactionsRequest, needs=names((Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)))
async def list_transactions(
    context: RequestContext[Broker], request: ListTransactionsRequest
) -> ListTransactionsResponse:
    from pykbroker.transactions.administration import TransactionFilter

    coordinator = context.node.transactions.coordinator
    if coordinator.loading_partitions:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    try:
        wanted = TransactionFilter(request)
    except ValueError:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    answer = ListTransactionsResponse(unknown_state_filters=wanted.unknown_states)
    for index in coordinator.active_partitions:
        try:
            answer.transaction_states += await _transactions_of_partition(context, wanted, index)
        except ApiError:
            continue  # it is led elsewhere by now, and listed there
    ids = [each.transactional_id for each in answer.transaction_states]
    hidden = await denied(context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, ids, is_logged=False)
    if hidden:
        answer.transaction_states = [each for each in answer.transaction_states if each.transactional_id not in hidden]
    return answer


async def _transactions_of_partition(
    context: RequestContext[Broker], wanted: TransactionFilter, index: int
) -> list[ListTransactionsResponseTransactionState]:
    """List the transactional ids that exist now, each as it is when its turn has come. Raises ApiError."""
    from pykbroker.transactions.administration import ListSomeTransactions

    coordinator = context.node.transactions.coordinator
    shard = coordinator.shard(index)
    if shard is None:
        raise ApiError(ErrorCode.NOT_COORDINATOR)
    states: list[ListTransactionsResponseTransactionState] = []
    for ids in portions(list(shard.transactions), _IDS_AT_ONCE):
        if wanted.has_pattern:
            ids = await context.node.threads.run(wanted.named, ids)
        asked = ListSomeTransactions(wanted, ids)
        response: ListTransactionsResponse = await coordinator.submit_to_partition(
            index, asked, transaction_context(context)
        )
        states += response.transaction_states
        await context.turn.took(len(ids) * _STEPS_OF_ID)
    return states
