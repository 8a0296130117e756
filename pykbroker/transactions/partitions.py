"""The partitions of a transaction: added by AddPartitionsToTxn and AddOffsetsToTxn, or looked up by a broker that is
to append a producer's records (KIP-890)."""

from __future__ import annotations

from dataclasses import replace

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.state_machine import CoordinatorContext

from .requests import AddPartitions, PartitionsAdded
from .step import TransactionStep
from .transaction import Transaction, TransactionState

_FIRST_VERSION_WITH_PRODUCER_FENCED = 2

_LONGEST_PARTITION_BYTES = 300
"""More than what a partition takes in a record: a topic's name has 249 bytes at most."""


class Partitions:
    def __init__(self, max_record_bytes: int) -> None:
        self._max_record_bytes = max_record_bytes

    def add(self, request: AddPartitions, context: CoordinatorContext, step: TransactionStep) -> PartitionsAdded:
        errors = self._verify(request, step) if request.verify_only else self._add(request, step)
        if isinstance(errors, ErrorCode):
            if errors is ErrorCode.PRODUCER_FENCED and context.api_version < _FIRST_VERSION_WITH_PRODUCER_FENCED:
                errors = ErrorCode.INVALID_PRODUCER_EPOCH
            errors = dict.fromkeys(request.partitions, errors)
        return PartitionsAdded(errors)

    def _verify(self, request: AddPartitions, step: TransactionStep) -> dict[TopicPartition, ErrorCode] | ErrorCode:
        transaction = _find(request, step)
        if isinstance(transaction, ErrorCode):
            return transaction
        return {
            partition: ErrorCode.NONE if partition in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in request.partitions
        }

    def _add(self, request: AddPartitions, step: TransactionStep) -> ErrorCode:
        transaction = _find(request, step)
        if isinstance(transaction, ErrorCode):
            return transaction
        added = [partition for partition in request.partitions if partition not in transaction.partitions]
        if transaction.state is TransactionState.ONGOING and not added:
            return ErrorCode.NONE
        if request.client_transaction_version and not step.can_log_second_protocol:
            return ErrorCode.UNSUPPORTED_VERSION
        if self._is_too_much(transaction, added, step):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        transaction.add_partitions(added, request.client_transaction_version, step.timestamp_ms)
        step.changed(transaction, f"{transaction.producer} adds {len(added)} partitions")
        return ErrorCode.NONE

    def _is_too_much(self, transaction: Transaction, added: list[TopicPartition], step: TransactionStep) -> bool:
        """Tell whether the record would be too large to append; the exact size is counted only near the limit."""
        count = len(transaction.partitions) + len(added)
        if count * _LONGEST_PARTITION_BYTES < self._max_record_bytes // 2:
            return False
        grown = replace(transaction, partitions=transaction.partitions | dict.fromkeys(added))
        return grown.record(step.transaction_version).size_bytes > self._max_record_bytes


def _find(request: AddPartitions, step: TransactionStep) -> Transaction | ErrorCode:
    """The transaction that the producer may write in, or could begin."""
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    transaction = step.table.find(request.transactional_id)
    if transaction is not None and transaction.is_ended_for(request.producer_id, request.producer_epoch):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if transaction is None or transaction.producer_id != request.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != request.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return transaction
