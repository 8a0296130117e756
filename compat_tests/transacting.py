"""A transactional producer in single requests, of the version that a scenario wants, and transactions that hang."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.transaction_admin import DescribeTransactionsRequest
from pykbroker.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
)
from pykbroker.protocol.records.batch import Record, encode_batch

from .brokers import Broker
from .waiting import until
from .wire import Wire

LAST_OF_THE_FIRST_PROTOCOL = 11
"""Of Produce: from the next version on the broker adds partitions itself."""
_TO_BE_ASKED_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
_BROKER = 4
_SET = 0


class RawProducer:
    """Sends nothing that it is not told to send; a context manager."""

    def __init__(self, broker: Broker, transactional_id: str, topic: str) -> None:
        self.transactional_id = transactional_id
        self.topic = topic
        self.producer_id, self.epoch = -1, -1
        self._wire = Wire(broker.address)

    def close(self) -> None:
        self._wire.__exit__(None, None, None)

    def call(self, request: Any, version: int) -> Any:
        return self._wire.call(request, version)

    def init(self, *, timeout_ms: int = 60_000) -> ErrorCode:
        """Waits until the coordinator is there, and until an earlier transaction is over."""
        until(self._has_coordinator, "a transaction coordinator")
        answer: Any = None

        def is_answered() -> bool:
            nonlocal answer
            answer = self.call(
                InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms), 5
            )
            return answer.error_code not in _TO_BE_ASKED_AGAIN

        until(is_answered, "an answer to InitProducerId")
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return ErrorCode(answer.error_code)

    def _has_coordinator(self) -> bool:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id])
        return bool(self.call(request, 6).coordinators[0].error_code == ErrorCode.NONE)

    def _is_complete(self) -> bool:
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        return not self.call(request, 0).transaction_states[0].transaction_state.startswith("Prepare")

    def add(self, *partitions: int) -> dict[int, str]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=self.topic, partitions=list(partitions))],
        )
        (answer,) = self.call(request, 3).results_by_topic_v3_and_below
        return {each.partition_index: ErrorCode(each.partition_error_code).name for each in answer.results_by_partition}

    def send(self, sequence: int, *values: bytes, version: int, partition: int = 0, epoch: int | None = None) -> str:
        """The error's name."""
        now_ms = time.time_ns() // 1_000_000
        records = encode_batch(
            [Record(key=None, value=value, timestamp=now_ms) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = PartitionProduceData(index=partition, records=records)
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=5_000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[data])],
        )
        answer = self.call(request, version).responses[0].partition_responses[0]
        return ErrorCode(answer.error_code).name

    def end(self, *, commit: bool, version: int) -> str:
        """The error's name; the transaction is complete then. From version 5 on the producer has its next epoch."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer: Any = None

        def is_answered() -> bool:
            nonlocal answer
            answer = self.call(request, version)
            return bool(answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS)

        until(is_answered, "an answer to EndTxn")
        if version >= 5 and answer.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        until(self._is_complete, "the markers are written")
        return ErrorCode(answer.error_code).name


@contextmanager
def raw_producer(broker: Broker, transactional_id: str, topic: str) -> Iterator[RawProducer]:
    producer = RawProducer(broker, transactional_id, topic)
    try:
        yield producer
    finally:
        producer.close()


def leave_hanging(broker: Broker, transactional_id: str, topic: str) -> RawProducer:
    """A transaction that is open in partition 0, and that no coordinator knows of: nobody looked when it began."""
    with raw_producer(broker, transactional_id, topic) as producer:
        assert producer.init() is ErrorCode.NONE
        with verification_switched_off(producer):
            until(
                lambda: producer.send(0, b"hanging", version=LAST_OF_THE_FIRST_PROTOCOL) == "NONE",
                "a batch that nobody verifies",
            )
        return producer


@contextmanager
def verification_switched_off(producer: RawProducer) -> Iterator[None]:
    try:
        _set_verification(producer, "false")
        yield
    finally:
        _set_verification(producer, "true")


def _set_verification(producer: RawProducer, value: str) -> None:
    config = IncrementalAlterConfigsRequestAlterableConfig(
        name="transaction.partition.verification.enable", config_operation=_SET, value=value
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=_BROKER, resource_name="", configs=[config]
    )
    answer = producer.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == ErrorCode.NONE, answer
