"""What time does to transactions: those that take too long are aborted, ids that nobody uses are forgotten.

How long is measured by the wall clock, since it goes on while no coordinator is there; how often one looks, by the
monotonic one.
"""

from __future__ import annotations

from .config import TransactionConfig
from .end_transactions import EndTransactions
from .step import Step, TransactionTable
from .transaction import NO_TIMEOUT_MS, Transaction


class Timeouts:
    def __init__(self, config: TransactionConfig, table: TransactionTable, ends: EndTransactions) -> None:
        self._config = config
        self._table = table
        self._ends = ends
        self._next_abort_ms: int | None = None
        self._next_removal_ms: int | None = None
        self._kept: tuple[int | None, int | None] = None, None

    def begin_trial(self) -> None:
        self._kept = self._next_abort_ms, self._next_removal_ms

    def take_back(self) -> None:
        self._next_abort_ms, self._next_removal_ms = self._kept

    def next_deadline_ms(self) -> int | None:
        deadlines = [self._next_abort_ms, self._next_removal_ms]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def keep_watch(self, now_ms: int) -> None:
        """After every step: nobody has to look where there is nothing to see."""
        if not self._table.ongoing:
            self._next_abort_ms = None
        elif self._next_abort_ms is None:
            self._next_abort_ms = now_ms + self._config.abort_timed_out_interval_ms
        if not self._table.by_id:
            self._next_removal_ms = None
        elif self._next_removal_ms is None:
            self._next_removal_ms = now_ms + self._config.remove_expired_interval_ms

    def expire(self, step: Step) -> None:
        if self._next_abort_ms is not None and self._next_abort_ms <= step.now_ms:
            self._next_abort_ms = None
            self._abort_timed_out(step)
        if self._next_removal_ms is not None and self._next_removal_ms <= step.now_ms:
            self._next_removal_ms = None
            self._remove_expired(step)

    def _abort_timed_out(self, step: Step) -> None:
        """One that needs a new producer id when there is none is looked at again next time."""
        for transaction in list(self._table.ongoing.values()):
            if _is_timed_out(transaction, step.timestamp_ms):
                self._table.keep(transaction.transactional_id)
                self._ends.fence_and_abort(transaction, f"it took longer than {transaction.timeout_ms} ms", step)

    def _remove_expired(self, step: Step) -> None:
        oldest_ms = step.timestamp_ms - self._config.transactional_id_expiration_ms
        for transaction in list(self._table.by_id.values()):
            if transaction.state.is_at_rest and transaction.last_update_timestamp_ms <= oldest_ms:
                step.removed(transaction, "forgotten, since nobody used it")


def _is_timed_out(transaction: Transaction, timestamp_ms: int) -> bool:
    if transaction.timeout_ms == NO_TIMEOUT_MS:
        return False
    return transaction.start_timestamp_ms + transaction.timeout_ms < timestamp_ms
