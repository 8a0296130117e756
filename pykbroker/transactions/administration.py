"""ListTransactions and DescribeTransactions: what an administrator sees."""

from __future__ import annotations

from collections.abc import Callable

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
    TopicData,
)
from pykbroker.state_machine import Token

from .step import Step
from .transaction import STATES_BY_WIRE_NAME, Transaction, group_by_topic


def list_transactions(request: ListTransactionsRequest, token: Token, step: Step) -> None:
    """What matches every filter that is given. Names of states that there are not are told, and match nothing."""
    pattern = request.transactional_id_pattern
    try:
        matches = _pattern(pattern) if pattern else _everything
    except ValueError:
        step.answer(token, ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION))
        return
    listed = [
        ListTransactionsResponseTransactionState(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            transaction_state=transaction.state.wire_name,
        )
        for transaction in step.table.by_id.values()
        if _is_asked_for(request, transaction, step.timestamp_ms) and matches(transaction.transactional_id)
    ]
    unknown = [name for name in request.state_filters if name not in STATES_BY_WIRE_NAME]
    step.answer(token, ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=listed))


def _is_asked_for(request: ListTransactionsRequest, transaction: Transaction, timestamp_ms: int) -> bool:
    """A transaction that never began counts as an old one, as in Kafka."""
    if request.producer_id_filters and transaction.producer_id not in request.producer_id_filters:
        return False
    states = {STATES_BY_WIRE_NAME[name] for name in request.state_filters if name in STATES_BY_WIRE_NAME}
    if request.state_filters and transaction.state not in states:
        return False
    return request.duration_filter < 0 or timestamp_ms - transaction.start_timestamp_ms > request.duration_filter


def _everything(_: str) -> bool:
    return True


def _pattern(pattern: str) -> Callable[[str], bool]:
    """RE2, which takes no longer for a hostile pattern; loaded by whoever uses one. Raises ValueError."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(str(error)) from error
    return lambda text: compiled.fullmatch(text) is not None


def describe_transactions(request: DescribeTransactionsRequest, token: Token, step: Step) -> None:
    described = [_describe(transactional_id, step) for transactional_id in request.transactional_ids]
    step.answer(token, DescribeTransactionsResponse(transaction_states=described))


def _describe(transactional_id: str, step: Step) -> DescribeTransactionsResponseTransactionState:
    described = DescribeTransactionsResponseTransactionState(transactional_id=transactional_id)
    transaction = step.table.by_id.get(transactional_id)
    if not transactional_id:
        described.error_code = ErrorCode.INVALID_REQUEST
    elif transaction is None:
        described.error_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    else:
        described.transaction_state = transaction.state.wire_name
        described.transaction_timeout_ms = transaction.timeout_ms
        described.transaction_start_time_ms = transaction.start_timestamp_ms
        described.producer_id = transaction.producer_id
        described.producer_epoch = transaction.producer_epoch
        described.topics = [
            TopicData(topic=topic, partitions=ids) for topic, ids in group_by_topic(transaction.partitions)
        ]
    return described
