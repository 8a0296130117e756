"""Transactional batches of a Produce request: see `transaction_verification`, here for several partitions at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.records.batch import (
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD_BYTES,
    RecordBatchHeader,
    decode_batch_header,
)
from pykbroker.replication.partition import Partition
from pykbroker.server.node.broker import Broker
from pykbroker.server.runtime.turns import Turn

from .transaction_verification import ClientSupport, TransactionVerification

_TRANSACTION_ABORTABLE_SINCE = 11
_ADDING_SINCE = 12

_STEPS_OF_LOOK = 5

FindPartition = Callable[[TopicProduceData, PartitionProduceData], Partition | ErrorCode]

_COORDINATOR_IS_NOT_THERE = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Unverified(ApiError):
    """The coordinator does not know of the partition in the transaction: the log was not asked."""


class TransactionalProduce:
    """The coordinator was asked about these partitions; `verify` makes it."""

    def __init__(
        self,
        verification: TransactionVerification | None,
        support: ClientSupport,
        headers: dict[Partition, RecordBatchHeader],
    ) -> None:
        self._verification = verification
        self._support = support
        self._headers = headers

    @staticmethod
    async def verify(
        broker: Broker, request: ProduceRequest, version: int, find: FindPartition, turn: Turn
    ) -> TransactionalProduce:
        """Raises `ApiError` where the request has batches of several producers."""
        support = _support(version)
        verification: TransactionVerification | None = None
        producer = None
        headers: dict[Partition, RecordBatchHeader] = {}
        for topic, data in _entries(request):
            await turn.took(_STEPS_OF_LOOK)
            header = None if data.records is None else _transactional_header(data.records)
            if header is None:
                continue
            if verification is None:
                assert request.transactional_id is not None
                producer = header.producer_id, header.producer_epoch
                verification = TransactionVerification(broker, request.transactional_id, *producer, support)
            elif producer != (header.producer_id, header.producer_epoch):
                raise ApiError(
                    ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
                )
            partition = find(topic, data)
            if isinstance(partition, Partition) and partition.is_leader:
                verification.begin(partition, header.base_sequence)
                headers[partition] = header
        if verification is not None:
            await verification.ask()
        return TransactionalProduce(verification, support, headers)

    def check(self, partition: Partition, records: bytes | memoryview) -> RecordBatchHeader | None:
        """The header of the batch, at the moment of its append; None where it was not decoded. Raises `ApiError`."""
        verification, header = self._verification, self._headers.get(partition)
        if verification is None or not verification.is_needed:
            return header
        if header is None:  # no part of a transaction, or in a partition that was not led here before
            header = _transactional_header(records)
        if header is None:
            return None
        error_code = verification.refusal(partition)
        if error_code is not ErrorCode.NONE:
            raise self._rejection(error_code)
        partition.log.producers.check_verified_batch(header, verification.guard(partition))
        return header

    def _rejection(self, error_code: ErrorCode) -> Unverified:
        """Older clients may not know better than to give up where they could try again; NOT_ENOUGH_REPLICAS they know,
        and ask for no metadata."""
        is_early = error_code is ErrorCode.CONCURRENT_TRANSACTIONS and self._support is not ClientSupport.ADDING
        if is_early or error_code in _COORDINATOR_IS_NOT_THERE:
            return Unverified(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"the partition could not be verified to be part of the transaction: {error_code.name}",
            )
        if error_code is ErrorCode.INVALID_TXN_STATE:
            return Unverified(error_code, "the partition was not added to the transaction")
        return Unverified(error_code)  # without words, as from Kafka


def _support(version: int) -> ClientSupport:
    if version >= _ADDING_SINCE:
        return ClientSupport.ADDING
    return ClientSupport.ABORTABLE_ERRORS if version >= _TRANSACTION_ABORTABLE_SINCE else ClientSupport.FIRST_ERRORS


def _entries(request: ProduceRequest) -> Iterator[tuple[TopicProduceData, PartitionProduceData]]:
    for topic in request.topic_data:
        for data in topic.partition_data:
            yield topic, data


def _transactional_header(records: bytes | memoryview) -> RecordBatchHeader | None:
    """Return None for what is no part of a transaction, and where the log will say what is wrong."""
    if len(records) < RECORD_BATCH_OVERHEAD_BYTES or records[MAGIC_OFFSET] != MAGIC_VALUE_V2:
        return None
    header = decode_batch_header(records)
    return header if header.is_transactional and header.has_producer_id else None
