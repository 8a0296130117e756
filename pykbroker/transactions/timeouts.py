"""Time-outs of transactions: those that take too long are aborted, ids that nobody uses are forgotten.

The wall clock measures how long, since it goes on while no coordinator is there; the monotonic clock says how often to
look.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from .config import TransactionConfig
from .end_transactions import EndTransactions
from .step import TransactionStep, TransactionTable
from .transaction import NO_TIMEOUT_MS, Transaction

_AT_ONCE_MS = -1
MOST_LOOKED_AT = 5_000
MOST_DECIDED = 50
MOST_REMOVED = 500
"""What is done in one step: so many transactions are looked at, have their markers asked for, or are forgotten."""


_Due: TypeAlias = tuple[int | None, int | None, deque[str], deque[str]]


class TransactionTimeouts:
    def __init__(self, config: TransactionConfig, table: TransactionTable, ends: EndTransactions) -> None:
        self._config = config
        self._table = table
        self._ends = ends
        self._next_abort_ms: int | None = None
        self._next_removal_ms: int | None = None
        self._to_abort: deque[str] = deque()
        self._to_remove: deque[str] = deque()
        """Transactional ids that are to be looked at, of those that were there when the look began."""
        self._kept: _Due = None, None, deque(), deque()

    def begin_trial(self) -> None:
        self._kept = self._next_abort_ms, self._next_removal_ms, self._to_abort.copy(), self._to_remove.copy()

    def take_back(self) -> None:
        self._next_abort_ms, self._next_removal_ms, self._to_abort, self._to_remove = self._kept

    def next_deadline_ms(self) -> int | None:
        deadlines = [self._next_abort_ms, self._next_removal_ms]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def keep_watch(self, now_ms: int) -> None:
        """Set the deadlines after a step: there is none where no transaction could time out."""
        if not self._table.ongoing:
            self._next_abort_ms = None
        elif self._next_abort_ms is None:
            self._next_abort_ms = now_ms + self._config.abort_timed_out_interval_ms
        if not self._table.by_id:
            self._next_removal_ms = None
        elif self._next_removal_ms is None:
            self._next_removal_ms = now_ms + self._config.remove_expired_interval_ms

    def look_now(self) -> None:
        """Have the next steps look at all transactions, whenever the next look would be due."""
        self._to_abort.clear()
        self._to_remove.clear()
        self._next_abort_ms = _AT_ONCE_MS if self._table.ongoing else None
        self._next_removal_ms = _AT_ONCE_MS if self._table.by_id else None

    def is_overdue(self, transaction: Transaction, timestamp_ms: int) -> bool:
        """Tell whether the transaction takes too long, and is open all the same."""
        is_open = transaction.transactional_id in self._table.ongoing
        return is_open and self._is_timed_out(transaction, timestamp_ms)

    def expire(self, step: TransactionStep) -> None:
        """Abort and forget what is due; of very many a part, and the rest is still due."""
        if self._next_abort_ms is not None and self._next_abort_ms <= step.now_ms:
            if self._abort_timed_out(step):
                self._next_abort_ms = None
        elif self._next_removal_ms is not None and self._next_removal_ms <= step.now_ms and self._remove_expired(step):
            self._next_removal_ms = None

    def _abort_timed_out(self, step: TransactionStep) -> bool:
        """Tell whether all were looked at. One that lacks a producer id is looked at again next time."""
        if not self._to_abort:
            self._to_abort.extend(self._table.ongoing)
        for _ in range(min(len(self._to_abort), MOST_LOOKED_AT)):
            if len(step.records) >= MOST_DECIDED:
                break
            transaction = self._table.ongoing.get(self._to_abort.popleft())
            if transaction is not None and self._is_timed_out(transaction, step.timestamp_ms):
                self._table.keep(transaction.transactional_id)
                self._ends.fence_and_abort(transaction, f"it took longer than {transaction.timeout_ms} ms", step)
        return not self._to_abort

    def _remove_expired(self, step: TransactionStep) -> bool:
        """Tell whether all were looked at."""
        if not self._to_remove:
            self._to_remove.extend(self._table.by_id)
        expiration_ms = self._config.transactional_id_expiration_ms
        oldest_ms = self._config.reckon_unused(step.timestamp_ms, expiration_ms) - expiration_ms
        for _ in range(min(len(self._to_remove), MOST_LOOKED_AT)):
            if len(step.records) >= MOST_REMOVED:
                break
            transaction = self._table.by_id.get(self._to_remove.popleft())
            is_at_rest = transaction is not None and transaction.state.is_at_rest
            if transaction is not None and is_at_rest and transaction.last_update_timestamp_ms <= oldest_ms:
                step.removed(transaction, "forgotten, since nobody used it")
        return not self._to_remove

    def _is_timed_out(self, transaction: Transaction, timestamp_ms: int) -> bool:
        timeout_ms = transaction.timeout_ms
        if timeout_ms == NO_TIMEOUT_MS:
            return False
        return transaction.start_timestamp_ms + timeout_ms < self._config.reckon_timeouts(timestamp_ms, timeout_ms)
