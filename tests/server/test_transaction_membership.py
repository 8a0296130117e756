"""Partitions here, and their transactions coordinated by another broker (KIP-890)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pykbroker.api.produce import produce
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.server.coordinators.marker import Marker
from pykbroker.server.coordinators.transaction_coordinator import TRANSACTION_STATE
from pykbroker.server.coordinators.transaction_membership import SECOND_PROTOCOL
from tests.api.api_node import ApiNode, batch, in_virtual_time

from .other_broker import OtherBroker

TOPIC = "orders"
ELSEWHERE = 2
NONE = ErrorCode.NONE


async def send(node: ApiNode, version: int, producer_epoch: int = 0) -> ErrorCode:
    records = batch(b"a", producer_id=5, producer_epoch=producer_epoch, base_sequence=0, is_transactional=True)
    topic_id = node.image.topics[TOPIC].topic_id
    data = TopicProduceData(
        name=TOPIC if version < 13 else "",
        topic_id=topic_id if version >= 13 else bytes(16),
        partition_data=[PartitionProduceData(index=0, records=records)],
    )
    request = ProduceRequest(transactional_id="t", acks=-1, timeout_ms=1000, topic_data=[data])
    answer = await node.call(produce, request, version)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def coordinated_elsewhere(tmp_path: Path, main: Callable[[ApiNode, OtherBroker], Awaitable[None]]) -> None:
    async def run() -> None:
        node = ApiNode(tmp_path)
        node.create_topic(TRANSACTION_STATE, 1, leader=ELSEWHERE)
        node.create_topic(TOPIC, 1)
        await main(node, OtherBroker())
        await node.transactions.inter_broker.aclose()
        node.close()

    in_virtual_time(run)


@pytest.mark.parametrize(("version", "verify_only"), [(9, True), (11, True), (12, False), (13, False)])
def test_the_coordinator_is_asked_once_in_a_transaction(tmp_path: Path, version: int, verify_only: bool) -> None:
    async def main(node: ApiNode, other: OtherBroker) -> None:
        async with other.serving(node.network):
            assert await send(node, version) is NONE
            assert await send(node, version) is NONE, "it may come again"
        assert other.verified == [(verify_only, [0])]
        assert node.partition(TOPIC).log.log_end_offset == 1

    coordinated_elsewhere(tmp_path, main)


@pytest.mark.parametrize(
    ("told", "version", "expected"),
    [
        (ErrorCode.NOT_COORDINATOR, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 10, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 12, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_what_the_coordinator_says_is_told_in_words_that_the_client_knows(
    tmp_path: Path, told: ErrorCode, version: int, expected: ErrorCode
) -> None:
    async def main(node: ApiNode, other: OtherBroker) -> None:
        other.told = [told]
        async with other.serving(node.network):
            assert await send(node, version) is expected
            assert node.partition(TOPIC).log.log_end_offset == 0
            assert await send(node, version) is NONE, "asked anew"

    coordinated_elsewhere(tmp_path, main)


def test_a_transaction_whose_predecessor_is_not_complete_is_waited_for_a_moment(tmp_path: Path) -> None:
    async def main(node: ApiNode, other: OtherBroker) -> None:
        async with other.serving(node.network):
            other.told = [ErrorCode.CONCURRENT_TRANSACTIONS] * 3
            assert await send(node, 12) is NONE
            assert len(other.verified) == 4

    coordinated_elsewhere(tmp_path, main)


def test_a_predecessor_that_takes_longer_is_told(tmp_path: Path) -> None:
    async def main(node: ApiNode, other: OtherBroker) -> None:
        async with other.serving(node.network):
            other.told = [ErrorCode.CONCURRENT_TRANSACTIONS] * 100
            assert await send(node, 12) is ErrorCode.CONCURRENT_TRANSACTIONS
            assert len(other.verified) == 6, "at once, and then every 20 ms for 100 ms"

    coordinated_elsewhere(tmp_path, main)


@pytest.mark.parametrize("verdict", [ErrorCode.CONCURRENT_TRANSACTIONS, NONE])
def test_the_predecessors_marker_may_come_while_the_coordinator_is_asked(tmp_path: Path, verdict: ErrorCode) -> None:
    async def main(node: ApiNode, other: OtherBroker) -> None:
        def write_marker() -> None:
            other.before_verdict = lambda: None
            marker = Marker(
                producer_id=5,
                producer_epoch=1,
                coordinator_epoch=0,
                is_commit=True,
                transaction_version=SECOND_PROTOCOL,
            )
            assert not isinstance(node.transactions.marker_appends.append(TOPIC, 0, marker), ErrorCode)

        async with other.serving(node.network):
            assert await send(node, 12) is NONE
            other.told, other.before_verdict = [verdict], write_marker
            assert await send(node, 12, producer_epoch=1) is NONE
            assert len(other.verified) == 3, "for the first transaction, and twice for the second"

    coordinated_elsewhere(tmp_path, main)


def test_a_coordinator_that_cannot_be_reached_is_asked_for_later(tmp_path: Path) -> None:
    async def main(node: ApiNode, other: OtherBroker) -> None:
        assert await send(node, 12) is ErrorCode.NOT_ENOUGH_REPLICAS
        async with other.serving(node.network):
            assert await send(node, 12) is NONE

    coordinated_elsewhere(tmp_path, main)
