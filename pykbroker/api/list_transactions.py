"""ListTransactions (key 66): the transactional ids of this coordinator (KIP-664).

Served are versions 0 to 2: 1 brought a filter by duration (KIP-994), 2 one by a regular expression (KIP-1152).
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_admin import ListTransactionsRequest, ListTransactionsResponse
from pykbroker.server.coordinator_driver import CoordinatorRefused
from pykbroker.server.dispatch import RequestContext, handles

from .transaction_requests import transaction_context


@handles(ListTransactionsRequest)
async def list_transactions(context: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    coordinator = context.broker.transactions.coordinator
    if coordinator.loading_partitions:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    answer = ListTransactionsResponse()
    for index in coordinator.active_partitions:
        try:
            of_partition: ListTransactionsResponse = await coordinator.submit_to_partition(
                index, request, transaction_context(context)
            )
        except CoordinatorRefused:
            continue  # it is led elsewhere by now, and listed there
        if of_partition.error_code:
            return of_partition
        answer.unknown_state_filters = of_partition.unknown_state_filters
        answer.transaction_states = answer.transaction_states + of_partition.transaction_states
    return answer
