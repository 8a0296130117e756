"""EndTxn, and the aborts that nobody asks for: a transaction is decided, its markers are written, it is complete.

In the second protocol (EndTxn from version 5 on, KIP-890) the producer's epoch rises with each transaction. A request
that comes again is known by its epoch then, and one of a transaction before is fenced.
"""

from __future__ import annotations

from collections.abc import Callable

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transactions import EndTxnRequest, EndTxnResponse
from pykbroker.state_machine import CoordinatorContext

from .effects import WriteMarkers
from .requests import MarkersWritten
from .step import TransactionStep
from .transaction import (
    EPOCH_BUMP_VERSION,
    LAST_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    TransactionState,
)

_FIRST_VERSION_WITH_PRODUCER_FENCED = 2
_FIRST_VERSION_WITH_EPOCH_BUMP = 5


class EndTransactions:
    def __init__(self, take_producer_id: Callable[[], int | None], coordinator_epoch: int) -> None:
        self._take_producer_id = take_producer_id
        self._coordinator_epoch = coordinator_epoch

    def end(self, request: EndTxnRequest, context: CoordinatorContext, step: TransactionStep) -> EndTxnResponse:
        bumps_epoch = context.api_version >= _FIRST_VERSION_WITH_EPOCH_BUMP
        error_code = self._end(request, bumps_epoch, step)
        if error_code is ErrorCode.PRODUCER_FENCED and context.api_version < _FIRST_VERSION_WITH_PRODUCER_FENCED:
            error_code = ErrorCode.INVALID_PRODUCER_EPOCH
        producer = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        if error_code is ErrorCode.NONE and bumps_epoch:
            producer = step.table.by_id[request.transactional_id].completed_producer
        return EndTxnResponse(error_code=error_code, producer_id=producer[0], producer_epoch=producer[1])

    def _end(self, request: EndTxnRequest, bumps_epoch: bool, step: TransactionStep) -> ErrorCode:
        if not request.transactional_id:
            return ErrorCode.INVALID_REQUEST
        transaction = step.table.find(request.transactional_id)
        if transaction is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if bumps_epoch:
            return self._end_second(request, transaction, step)
        return self._end_first(request, transaction, step)

    def _end_first(self, request: EndTxnRequest, transaction: Transaction, step: TransactionStep) -> ErrorCode:
        """A request that comes again looks like the first; it is answered by what the transaction has come to.

        So does one of the next transaction to a coordinator that was replaced, and has not heard of that: it must not
        say that it is done. Apache Kafka's does.
        """
        if request.producer_id != transaction.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if request.producer_epoch != transaction.producer_epoch:
            return ErrorCode.PRODUCER_FENCED
        if transaction.state is TransactionState.ONGOING:
            self._decide(transaction, request.committed, 0, NO_PRODUCER_ID, "", step)
            return ErrorCode.NONE
        error_code = _told_again(request, transaction)
        if error_code is ErrorCode.NONE:
            # Who is no leader any more cannot write, and does not answer.
            step.changed(transaction, "it is told again that it is complete")
        return error_code

    def _end_second(self, request: EndTxnRequest, transaction: Transaction, step: TransactionStep) -> ErrorCode:
        # Only what the second protocol ended has left its producer an epoch behind. In the first one, an epoch behind
        # is a zombie, which must not learn the epoch of who came after it.
        was_bumped = transaction.client_transaction_version >= EPOCH_BUMP_VERSION
        retries_new_id = (
            was_bumped
            and request.producer_id == transaction.previous_producer_id
            and request.producer_epoch == LAST_EPOCH - 1
            and transaction.producer_epoch == 0
        )
        is_retry = retries_new_id or (was_bumped and transaction.producer_epoch == request.producer_epoch + 1)
        is_current = transaction.producer_epoch == request.producer_epoch
        if transaction.is_ended_for(request.producer_id, request.producer_epoch):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if request.producer_id != transaction.producer_id and not retries_new_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        match transaction.state:
            case TransactionState.ONGOING:
                if not is_current:
                    return ErrorCode.PRODUCER_FENCED
                return self._end_now(request, transaction, step)
            case TransactionState.EMPTY:
                if not is_current:
                    return ErrorCode.PRODUCER_FENCED
                return self._end_nothing(request, transaction, step)
            case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
                if is_retry:
                    return _told_again(request, transaction)
                if not is_current:
                    return ErrorCode.PRODUCER_FENCED
                return self._end_nothing(request, transaction, step)
            case _:
                return _told_again(request, transaction) if is_retry else ErrorCode.PRODUCER_FENCED

    def _end_nothing(self, request: EndTxnRequest, transaction: Transaction, step: TransactionStep) -> ErrorCode:
        """There is no transaction. A producer that could not write does not know that, and may abort."""
        if request.committed:
            return ErrorCode.INVALID_TXN_STATE
        return self._end_now(request, transaction, step)

    def _end_now(self, request: EndTxnRequest, transaction: Transaction, step: TransactionStep) -> ErrorCode:
        if not step.can_log_second_protocol:
            return ErrorCode.UNSUPPORTED_VERSION
        next_producer_id = self._next_producer_id(transaction)
        if next_producer_id is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self._decide(transaction, request.committed, EPOCH_BUMP_VERSION, next_producer_id, "", step)
        return ErrorCode.NONE

    def _next_producer_id(self, transaction: Transaction) -> int | None:
        return self._take_producer_id() if transaction.is_producer_epoch_exhausted else NO_PRODUCER_ID

    def fence_and_abort(self, transaction: Transaction, reason: str, step: TransactionStep) -> ErrorCode:
        """Abort without a request of the producer, which is fenced; the cluster's level decides the protocol."""
        if step.transaction_version < EPOCH_BUMP_VERSION:
            transaction.fence()
            self._decide(transaction, False, 0, NO_PRODUCER_ID, reason, step)
            return ErrorCode.NONE
        next_producer_id = self._next_producer_id(transaction)
        if next_producer_id is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self._decide(transaction, False, EPOCH_BUMP_VERSION, next_producer_id, reason, step)
        return ErrorCode.NONE

    def _decide(
        self,
        transaction: Transaction,
        is_commit: bool,
        client_transaction_version: int,
        next_producer_id: int,
        reason: str,
        step: TransactionStep,
    ) -> None:
        transaction.prepare(
            is_commit=is_commit,
            client_transaction_version=client_transaction_version,
            next_producer_id=next_producer_id,
            timestamp_ms=step.timestamp_ms,
        )
        what = "commit" if is_commit else "abort"
        because = f", since {reason}" if reason else ""
        step.changed(transaction, f"{what} of {transaction.producer}{because}")
        self.carry_on(transaction, step)

    def carry_on(self, transaction: Transaction, step: TransactionStep) -> None:
        """A decided transaction: its markers, or its end where it has none to write."""
        if not transaction.partitions:
            transaction.complete(step.timestamp_ms)
            step.changed(transaction, "complete")
            return
        step.effects.append(
            WriteMarkers(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                is_commit=transaction.state is TransactionState.PREPARE_COMMIT,
                partitions=tuple(transaction.partitions),
                coordinator_epoch=self._coordinator_epoch,
                transaction_version=transaction.client_transaction_version,
            )
        )

    def markers_written(self, request: MarkersWritten, step: TransactionStep) -> ErrorCode:
        """Note markers that are written; only the last one of a transaction makes a record."""
        transaction = step.table.find(request.transactional_id)
        if transaction is not None and _is_about(request, transaction):
            for partition in request.partitions:
                transaction.partitions.pop(partition, None)
            if not transaction.partitions:
                transaction.complete(step.timestamp_ms)
                step.changed(transaction, "complete")
        return ErrorCode.NONE


def _told_again(request: EndTxnRequest, transaction: Transaction) -> ErrorCode:
    """Return the answer to a repeated EndTxn of a transaction that is decided."""
    match transaction.state, request.committed:
        case (TransactionState.COMPLETE_COMMIT, True) | (TransactionState.COMPLETE_ABORT, False):
            return ErrorCode.NONE
        case (TransactionState.PREPARE_COMMIT, True) | (TransactionState.PREPARE_ABORT, False):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        case _:
            return ErrorCode.INVALID_TXN_STATE


def _is_about(request: MarkersWritten, transaction: Transaction) -> bool:
    return (
        transaction.state.is_prepared
        and request.producer_id == transaction.producer_id
        and request.producer_epoch == transaction.producer_epoch
    )
