"""InitProducerId of a transactional producer: an epoch that fences everybody who had an earlier one (KIP-98).

A producer may say which id and epoch it has, and goes on only if nobody else came in between (KIP-360). The caller
sees to requests without a transactional id.
"""

from __future__ import annotations

from collections.abc import Callable

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from pykbroker.state_machine import CoordinatorContext

from .config import TransactionConfig
from .end_transactions import EndTransactions
from .step import TransactionStep
from .transaction import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT_MS,
    Transaction,
    TransactionState,
    is_exhausted,
)

_FIRST_VERSION_WITH_PRODUCER_FENCED = 4


def refusal(request: InitProducerIdRequest, config: TransactionConfig) -> ErrorCode | None:
    """The error of a request that no coordinator would serve. Kafka looks for it before it looks for a coordinator."""
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if request.enable2_pc and not config.two_phase_commit_enabled:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if request.keep_prepared_txn:
        # Kafka has the field, and nothing behind it.
        return ErrorCode.UNSUPPORTED_VERSION
    if not request.enable2_pc and not 0 < request.transaction_timeout_ms <= config.max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return None


class InitProducerIds:
    def __init__(
        self, config: TransactionConfig, take_producer_id: Callable[[], int | None], ends: EndTransactions
    ) -> None:
        self._config = config
        self._take_producer_id = take_producer_id
        self._ends = ends

    def init(
        self, request: InitProducerIdRequest, context: CoordinatorContext, step: TransactionStep
    ) -> InitProducerIdResponse:
        answer = refusal(request, self._config) or self._init(request, step)
        if isinstance(answer, Transaction):
            return InitProducerIdResponse(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)
        if answer is ErrorCode.PRODUCER_FENCED and context.api_version < _FIRST_VERSION_WITH_PRODUCER_FENCED:
            answer = ErrorCode.INVALID_PRODUCER_EPOCH
        return InitProducerIdResponse(error_code=answer, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)

    def _init(self, request: InitProducerIdRequest, step: TransactionStep) -> Transaction | ErrorCode:
        """The producer's new id and epoch, or what was wrong."""
        assert request.transactional_id is not None
        timeout_ms = NO_TIMEOUT_MS if request.enable2_pc else request.transaction_timeout_ms
        transaction = step.table.find(request.transactional_id)
        if transaction is None:
            return self._begin(request, timeout_ms, step)
        if transaction.is_ended_for(request.producer_id, request.producer_epoch):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if _has_producer(request) and not _is_valid_producer(request, transaction):
            return ErrorCode.PRODUCER_FENCED
        if transaction.state.is_prepared:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if transaction.state is TransactionState.ONGOING:
            # The producer comes again when the abort is through, and has its epoch then.
            error_code = self._ends.fence_and_abort(transaction, "another producer begins", step)
            return error_code or ErrorCode.CONCURRENT_TRANSACTIONS
        return self._go_on(request, transaction, timeout_ms, step)

    def _begin(self, request: InitProducerIdRequest, timeout_ms: int, step: TransactionStep) -> Transaction | ErrorCode:
        assert request.transactional_id is not None
        producer_id = self._take_producer_id()
        if producer_id is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        transaction = Transaction(request.transactional_id, producer_id, timeout_ms, step.timestamp_ms)
        transaction.begin_epoch(0, NO_PRODUCER_EPOCH, timeout_ms, step.timestamp_ms)
        step.changed(transaction, f"{transaction.producer} begins")
        return transaction

    def _go_on(
        self, request: InitProducerIdRequest, transaction: Transaction, timeout_ms: int, step: TransactionStep
    ) -> Transaction | ErrorCode:
        epoch, expected = transaction.producer_epoch, request.producer_epoch
        is_expected = not _has_producer(request) or expected == epoch
        last_epoch = epoch if _has_producer(request) else NO_PRODUCER_EPOCH
        if transaction.is_producer_epoch_exhausted and is_expected:
            producer_id = self._take_producer_id()
            if producer_id is None:
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            transaction.begin_producer_id(producer_id, last_epoch, timeout_ms, step.timestamp_ms)
        elif is_expected:
            transaction.begin_epoch(epoch + 1, last_epoch, timeout_ms, step.timestamp_ms)
        elif expected == transaction.last_producer_epoch:
            # The answer to the same request was lost.
            transaction.begin_epoch(epoch, expected, timeout_ms, step.timestamp_ms)
        else:
            return ErrorCode.PRODUCER_FENCED
        step.changed(transaction, f"{transaction.producer} begins")
        return transaction


def _has_producer(request: InitProducerIdRequest) -> bool:
    return request.producer_id != NO_PRODUCER_ID


def _is_valid_producer(request: InitProducerIdRequest, transaction: Transaction) -> bool:
    """The previous id is good where its epochs were used up: the answer with the new one may have been lost."""
    if request.producer_id == transaction.producer_id:
        return True
    return request.producer_id == transaction.previous_producer_id and is_exhausted(request.producer_epoch)
