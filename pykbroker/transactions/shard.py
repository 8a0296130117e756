"""The coordinator of the transactions in one partition of `__transaction_state`; the door to this package.

`handle` and `expire` change the state at once and give the records that make the change last; `replay` builds the same
state from records read back. The driver holds answers back until the records are committed, and carries out the
effects then: no marker is written of a decision that could still be lost, and nobody is told of one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from pykbroker.protocol.messages.transaction_admin import DescribeTransactionsRequest
from pykbroker.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue
from pykbroker.protocol.messages.transactions import EndTxnRequest, InitProducerIdRequest
from pykbroker.state_machine import BadRecord, CoordinatorContext, Result, Token

from .administration import ListSomeTransactions, describe_transactions, list_transactions
from .config import TransactionConfig
from .end_transactions import EndTransactions
from .init_producer_id import InitProducerIds
from .partitions import Partitions
from .records import TransactionRecord
from .requests import AddPartitions, MarkersWritten
from .step import TransactionStep, TransactionTable
from .timeouts import MOST_DECIDED, TransactionTimeouts
from .transaction import Transaction

TransactionRequest: TypeAlias = (
    InitProducerIdRequest
    | AddPartitions
    | EndTxnRequest
    | MarkersWritten
    | ListSomeTransactions
    | DescribeTransactionsRequest
)


class TransactionShard:
    """The transactional ids of one partition of `__transaction_state`.

    coordinator_epoch: the leader epoch of the partition, for which this shard lives; markers carry it.
    transaction_version: the level of the cluster at the moment (0, 1 or 2). It decides how records are written, and
    how the coordinator aborts what nobody asked it to.
    take_producer_id: a producer id that nobody has; None where there is none now, which a client is told with
    COORDINATOR_LOAD_IN_PROGRESS.
    """

    def __init__(
        self,
        config: TransactionConfig,
        *,
        coordinator_epoch: int,
        transaction_version: Callable[[], int],
        take_producer_id: Callable[[], int | None],
    ) -> None:
        self.config = config
        self._table = TransactionTable()
        self._transaction_version = transaction_version
        self._ends = EndTransactions(take_producer_id, coordinator_epoch)
        self._init_producer_ids = InitProducerIds(config, take_producer_id, self._ends)
        self._partitions = Partitions(config.max_record_bytes)
        self._timeouts = TransactionTimeouts(config, self._table, self._ends)
        self._to_carry_on: deque[str] | None = None
        """What was decided before this shard, and whose markers were not asked for yet."""
        self._kept_to_carry_on: deque[str] | None = None

    @property
    def transactions(self) -> Mapping[str, Transaction]:
        """All transactions by transactional id, to look at."""
        return self._table.by_id

    def handle(
        self,
        request: TransactionRequest,
        token: Token,
        now_ms: int,
        context: CoordinatorContext,
        timestamp_ms: int,
    ) -> Result[TransactionRecord]:
        """Handle one request.

        now_ms: monotonic, for deadlines. timestamp_ms: wall clock, for what is written, and how old it is.
        """
        step = self._begin_step(now_ms, timestamp_ms)
        step.answer(token, self._answer(request, context, step))
        return self._finish(step)

    def _answer(self, request: TransactionRequest, context: CoordinatorContext, step: TransactionStep) -> object:
        match request:
            case InitProducerIdRequest():
                return self._init_producer_ids.init(request, context, step)
            case AddPartitions():
                return self._partitions.add(request, context, step)
            case EndTxnRequest():
                return self._ends.end(request, context, step)
            case MarkersWritten():
                return self._ends.markers_written(request, step)
            case ListSomeTransactions():
                return list_transactions(request, step)
            case DescribeTransactionsRequest():
                return describe_transactions(request, step)

    def next_deadline_ms(self) -> int | None:
        return self._timeouts.next_deadline_ms()

    def expire(self, now_ms: int, timestamp_ms: int) -> Result[TransactionRecord]:
        step = self._begin_step(now_ms, timestamp_ms)
        self._timeouts.expire(step)
        return self._finish(step)

    def look_now(self) -> None:
        self._timeouts.look_now()

    def is_unfinished(self, transactional_id: str, timestamp_ms: int) -> bool:
        """Tell whether the id's transaction takes too long and is open all the same, or is decided and its markers are
        not all written.
        """
        transaction = self._table.by_id.get(transactional_id)
        if transaction is None:
            return False
        return transaction.state.is_prepared or self._timeouts.is_overdue(transaction, timestamp_ms)

    def _begin_step(self, now_ms: int, timestamp_ms: int) -> TransactionStep:
        return TransactionStep(self._table, now_ms, timestamp_ms, self._transaction_version())

    def _finish(self, step: TransactionStep) -> Result[TransactionRecord]:
        self._timeouts.keep_watch(step.now_ms)
        return step.result()

    # Trials

    def begin_trial(self) -> None:
        """The next step may be taken back."""
        self._table.begin_trial()
        self._timeouts.begin_trial()
        self._kept_to_carry_on = None if self._to_carry_on is None else self._to_carry_on.copy()

    def end_trial(self, *, is_kept: bool) -> None:
        """End the trial of a step. is_kept: whether the step did happen; else all is as it was before it."""
        self._table.end_trial(is_kept=is_kept)
        if not is_kept:
            self._timeouts.take_back()
            self._to_carry_on = self._kept_to_carry_on

    # Loading

    def replay(self, key: TransactionLogKey, value: TransactionLogValue | None) -> None:
        """Apply one record that was read back. Raises BadRecord, and is then as it was before."""
        self._table.replay(key, value)

    def replay_pending(self, producer_id: int, key: TransactionLogKey, value: TransactionLogValue | None) -> None:
        raise BadRecord("a record of the transaction log is never part of a transaction")

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """A marker in the transaction log ends nothing."""

    def tidy_up(self) -> bool:
        """Do what a step left to be done later: nothing, for transactions."""
        return False

    def prepare_timers(self, now_ms: int) -> Iterator[None]:
        """There is nothing to prepare."""
        return iter(())

    def start_timers(self, now_ms: int, timestamp_ms: int) -> Result[TransactionRecord]:
        """Carry on the transactions that were decided, whose markers may be missing.

        The caller calls it when every record is replayed, and again while the result is unfinished.
        """
        step = self._begin_step(now_ms, timestamp_ms)
        if self._to_carry_on is None:
            self._to_carry_on = deque(each for each, found in self._table.by_id.items() if found.state.is_prepared)
        for _ in range(min(len(self._to_carry_on), MOST_DECIDED)):
            transaction = self._table.find(self._to_carry_on.popleft())
            if transaction is not None and transaction.state.is_prepared:
                self._ends.carry_on(transaction, step)
        step.is_unfinished = bool(self._to_carry_on)
        return self._finish(step)
