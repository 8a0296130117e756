"""The transactions of a producer against scripted answers: what is asked of the coordinator, and when."""

from __future__ import annotations

import pytest
import trio

from pykbroker.client.errors import KafkaError
from pykbroker.client.producer import open_producer
from pykbroker.client.producer_transaction import ProducerTransaction, init_transactions
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from pykbroker.protocol.messages.produce import ProduceRequest
from pykbroker.protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    EndTxnRequest,
    EndTxnResponse,
)
from tests.client.fake_broker import HOST, PORT, FakeBroker, with_broker
from tests.client.test_producer import PRODUCER_ID, Log, send_values


class TransactionCoordinator:
    """Serves transactional id `x`. codes: the first answers to AddPartitionsToTxn."""

    def __init__(self, broker: FakeBroker, codes: list[ErrorCode] | None = None) -> None:
        self.log = Log(broker)
        self.versions: dict[str, int] = {}
        self._codes = codes or []
        broker.serve(
            FindCoordinatorRequest,
            lambda request, version: FindCoordinatorResponse(
                coordinators=[Coordinator(key="x", node_id=1, host=HOST, port=PORT)]
            ),
        )
        broker.serve(AddPartitionsToTxnRequest, self._add)
        broker.serve(EndTxnRequest, self._end)

    def _add(self, request: AddPartitionsToTxnRequest, version: int) -> AddPartitionsToTxnResponse:
        self.versions["add"] = version
        code = self._codes.pop(0) if self._codes else ErrorCode.NONE
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                        for index in topic.partitions
                    ],
                )
                for topic in request.v3_and_below_topics
            ]
        )

    def _end(self, request: EndTxnRequest, version: int) -> EndTxnResponse:
        self.versions["end"] = version
        return EndTxnResponse()


def added(broker: FakeBroker) -> list[list[int]]:
    return [request.v3_and_below_topics[0].partitions for request in broker.of_type(AddPartitionsToTxnRequest)]


async def produce(broker: FakeBroker, *transactions: list[int]) -> ProducerTransaction:
    """Send a record to each of these partitions, one transaction after the other."""
    cluster = broker.cluster()
    transaction = await init_transactions(cluster, "x")
    async with open_producer(cluster, transaction=transaction) as producer:
        for partitions in transactions:
            for partition in partitions:
                await send_values(producer, b"v", partition=partition)
            await producer.flush()
            await transaction.end(committed=True)
    return transaction


def test_partitions_are_added_once_a_transaction_before_their_first_batch() -> None:
    async def scenario(broker: FakeBroker) -> None:
        coordinator = TransactionCoordinator(broker)
        await produce(broker, [0, 0], [0])
        kinds = [type(each) for each in broker.requests if isinstance(each, AddPartitionsToTxnRequest | ProduceRequest)]
        assert kinds[0] is AddPartitionsToTxnRequest
        assert added(broker) == [[0], [0]]
        assert [request.committed for request in broker.of_type(EndTxnRequest)] == [True, True]
        assert {request.transactional_id for request in broker.of_type(ProduceRequest)} == {"x"}
        headers = [batch.header for _, batch in coordinator.log.batches]
        assert all(header.is_transactional and header.producer_id == PRODUCER_ID for header in headers)
        assert coordinator.log.sequences == sorted(set(coordinator.log.sequences)), "sequences go on"
        assert coordinator.versions == {"add": 3, "end": 4}, "versions of clients before KIP-890"

    with_broker(scenario)


def test_a_transaction_without_a_record_asks_nothing_of_the_coordinator() -> None:
    async def scenario(broker: FakeBroker) -> None:
        TransactionCoordinator(broker)
        transaction = await produce(broker, [])
        await transaction.end(committed=False)
        assert broker.of_type(EndTxnRequest) == []

    with_broker(scenario)


def test_a_coordinator_that_is_still_busy_with_the_last_one_is_asked_again() -> None:
    async def scenario(broker: FakeBroker) -> None:
        coordinator = TransactionCoordinator(broker, [ErrorCode.CONCURRENT_TRANSACTIONS] * 2)
        await produce(broker, [1])
        assert added(broker) == [[1], [1], [1]]
        assert coordinator.log.values(1) == [b"v"]

    with_broker(scenario)


def test_a_producer_that_is_fenced_sends_nothing_more() -> None:
    async def scenario(broker: FakeBroker) -> None:
        coordinator = TransactionCoordinator(broker, [ErrorCode.INVALID_PRODUCER_EPOCH] * 9)
        with trio.fail_after(1_000), pytest.raises(KafkaError) as fenced:
            await produce(broker, [1])
        assert fenced.value.error_code is ErrorCode.INVALID_PRODUCER_EPOCH
        assert coordinator.log.batches == []

    with_broker(scenario)
