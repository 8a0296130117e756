"""A coordinator without a broker, for scenarios: requests go straight to a shard, and markers are written at once."""

from __future__ import annotations

from collections.abc import Sequence

from pykbroker.java_hash import abs_java_hash
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transaction_admin import DescribeTransactionsRequest, ListTransactionsRequest
from pykbroker.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    InitProducerIdRequest,
)
from pykbroker.protocol.schema import Message
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.transactions.requests import AddPartitions, PartitionsAdded

from .session import Marker
from .world import TransactionWorld

_FIRST_VERSION_OF_BROKERS = 4


class ShardBroker:
    def __init__(self, world: TransactionWorld, offsets_partitions: int) -> None:
        self._world = world
        self._offsets_partitions = offsets_partitions
        self._markers: list[Marker] = []

    async def call(self, client: str, request: Message, version: int) -> Message:
        response = self._answer(request, version)
        self._write_markers()
        return response

    async def sleep(self, ms: int) -> None:
        self._world.pass_time(ms)
        self._write_markers()

    async def use_up_epochs(self, transactional_id: str, last: int) -> tuple[int, int]:
        return self._world.producer_at(last, transactional_id)

    def records(self) -> list[tuple[bytes, bytes | None]]:
        return self._world.log

    def markers(self) -> list[Marker]:
        return self._markers

    def _write_markers(self) -> None:
        for wanted in self._world.write_markers():
            self._markers += [
                Marker(f"{at.topic}-{at.partition}", wanted.producer_id, wanted.producer_epoch, wanted.is_commit)
                for at in wanted.partitions
            ]

    def _answer(self, request: Message, version: int) -> Message:
        match request:
            case ListTransactionsRequest():
                return self._world.list_as_asked(request)
            case InitProducerIdRequest() | EndTxnRequest() | DescribeTransactionsRequest():
                response: Message = self._world.call(request, version)
                return response
            case AddPartitionsToTxnRequest() if version >= _FIRST_VERSION_OF_BROKERS:
                results = [self._add(each, version, client_version=2) for each in request.transactions]
                return AddPartitionsToTxnResponse(results_by_transaction=results)
            case AddPartitionsToTxnRequest():
                result = self._add(_of_producer(request), version, client_version=0)
                return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)
            case AddOffsetsToTxnRequest():
                return self._add_offsets(request, version)
            case _:
                raise AssertionError(f"{type(request).__name__} is not for a coordinator of transactions")

    def _add(
        self, asked: AddPartitionsToTxnTransaction, version: int, *, client_version: int
    ) -> AddPartitionsToTxnResult:
        answer = self._world.call(
            AddPartitions(
                transactional_id=asked.transactional_id,
                producer_id=asked.producer_id,
                producer_epoch=asked.producer_epoch,
                partitions=tuple(_partitions(asked.topics)),
                verify_only=asked.verify_only,
                client_transaction_version=client_version,
            ),
            version,
        )
        assert isinstance(answer, PartitionsAdded)
        topics = [
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=each, partition_error_code=answer.errors[TopicPartition(topic.name, each)]
                    )
                    for each in topic.partitions
                ],
            )
            for topic in asked.topics
        ]
        return AddPartitionsToTxnResult(transactional_id=asked.transactional_id, topic_results=topics)

    def _add_offsets(self, request: AddOffsetsToTxnRequest, version: int) -> AddOffsetsToTxnResponse:
        at = TopicPartition("__consumer_offsets", abs_java_hash(request.group_id) % self._offsets_partitions)
        asked = AddPartitions(
            transactional_id=request.transactional_id,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            partitions=(at,),
        )
        answer = self._world.call(asked, version)
        assert isinstance(answer, PartitionsAdded)
        error_code: ErrorCode = answer.errors[at]
        return AddOffsetsToTxnResponse(error_code=error_code)


def _of_producer(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _partitions(topics: Sequence[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, each) for topic in topics for each in topic.partitions]
