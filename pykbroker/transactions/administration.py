"""ListTransactions and DescribeTransactions: what an administrator sees.

Matching an id of 32 KiB with a pattern can take a hundred milliseconds, even in linear time. So a pattern is bounded as
one by which consumers subscribe, and ids are matched in a thread (`TransactionFilter.named`), before the shard looks at
the transactions that have them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.linear_expressions import full_match
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

from .step import TransactionStep
from .transaction import STATES_BY_WIRE_NAME, Transaction, group_by_topic

LONGEST_PATTERN: Final = 32_768
MOST_PROGRAM_BYTES: Final = 1 << 19
"""The largest program of a pattern, which compiles in ten milliseconds at most; RE2's own bound is 16 times that."""


class TransactionFilter:
    """The filters of a ListTransactions request; one that is not given lets everything through.

    Unknown names of states match nothing, and the response tells them. Raises ValueError where the pattern is no
    regular expression of RE2, or too large.
    """

    def __init__(self, request: ListTransactionsRequest) -> None:
        pattern = request.transactional_id_pattern
        self._matches: Callable[[str], bool] | None = None
        if pattern:
            self._matches = full_match(pattern, longest=LONGEST_PATTERN, most_program_bytes=MOST_PROGRAM_BYTES)
        self._duration_ms = request.duration_filter
        self._producer_ids = frozenset(request.producer_id_filters)
        self._has_states = bool(request.state_filters)
        self._states = {STATES_BY_WIRE_NAME[name] for name in request.state_filters if name in STATES_BY_WIRE_NAME}
        self.unknown_states = list(
            dict.fromkeys(name for name in request.state_filters if name not in STATES_BY_WIRE_NAME)
        )

    @property
    def has_pattern(self) -> bool:
        """Tell whether ids are matched at all: else `named` is not needed."""
        return self._matches is not None

    def named(self, transactional_ids: Sequence[str]) -> Sequence[str]:
        """Return the ids that the pattern matches; it may run in a thread."""
        return transactional_ids if self._matches is None else list(filter(self._matches, transactional_ids))

    def asks_for(self, transaction: Transaction, timestamp_ms: int) -> bool:
        """Tell whether the other filters let the transaction through. One that never began counts as an old one, as in
        Kafka."""
        if self._producer_ids and transaction.producer_id not in self._producer_ids:
            return False
        if self._has_states and transaction.state not in self._states:
            return False
        return self._duration_ms < 0 or timestamp_ms - transaction.start_timestamp_ms > self._duration_ms


@dataclass(frozen=True, slots=True)
class ListSomeTransactions:
    """Those of these ids, which the pattern matches, that are asked for. Answered by a `ListTransactionsResponse`."""

    wanted: TransactionFilter
    transactional_ids: Sequence[str]


def list_transactions(request: ListSomeTransactions, step: TransactionStep) -> ListTransactionsResponse:
    found = map(step.table.by_id.get, request.transactional_ids)
    listed = [
        ListTransactionsResponseTransactionState(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            transaction_state=transaction.state.wire_name,
        )
        for transaction in found
        if transaction is not None and request.wanted.asks_for(transaction, step.timestamp_ms)
    ]
    return ListTransactionsResponse(transaction_states=listed)


def describe_transactions(request: DescribeTransactionsRequest, step: TransactionStep) -> DescribeTransactionsResponse:
    described = [_describe(transactional_id, step) for transactional_id in request.transactional_ids]
    return DescribeTransactionsResponse(transaction_states=described)


def _describe(transactional_id: str, step: TransactionStep) -> DescribeTransactionsResponseTransactionState:
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
