"""Markers for other brokers: what waits together goes together, and a slow broker delays nobody else's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
import trio
import trio.testing

from pykbroker.client.errors import ConnectionLost
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from pykbroker.server.coordinators.marker_queues import MOST_PARTITIONS, REQUESTS_IN_FLIGHT, MarkerQueues
from pykbroker.server.network.inter_broker import InterBroker
from tests.api.api_node import in_virtual_time

SLOW, FAST = 2, 3


def marker(producer_id: int, partitions: int = 1, epoch: int = 0) -> WritableTxnMarker:
    topics = [WritableTxnMarkerTopic(name="t", partition_indexes=list(range(partitions)))]
    return WritableTxnMarker(producer_id=producer_id, producer_epoch=epoch, transaction_result=True, topics=topics)


class Brokers:
    """asked: by broker, the producers of each request. may_answer: by broker, when it answers; SLOW has to be let.

    in_flight: purposes of requests that are not answered; a connection is answered in order, so none is there twice.
    """

    def __init__(self) -> None:
        self.asked: dict[int, list[list[int]]] = {SLOW: [], FAST: []}
        self.may_answer = {SLOW: trio.Event(), FAST: trio.Event()}
        self.may_answer[FAST].set()
        self.in_flight: list[tuple[int, str]] = []
        self.is_gone = False

    async def request(
        self, node_id: int, request: WriteTxnMarkersRequest, response_type: Any, *, purpose: str
    ) -> WriteTxnMarkersResponse:
        assert (node_id, purpose) not in self.in_flight
        self.asked[node_id].append([each.producer_id for each in request.markers])
        self.in_flight.append((node_id, purpose))
        await self.may_answer[node_id].wait()
        self.in_flight.remove((node_id, purpose))
        if self.is_gone:
            raise ConnectionLost("gone")
        results = [
            WritableTxnMarkerResult(
                producer_id=each.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=ErrorCode.NONE)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in reversed(request.markers)
        ]
        return WriteTxnMarkersResponse(markers=results)


class Asking:
    def __init__(self, nursery: trio.Nursery, queues: MarkerQueues) -> None:
        self._nursery = nursery
        self._queues = queues
        self.answers: dict[int, WritableTxnMarkerResult | None] = {}

    def start(self, node_id: int, asked: WritableTxnMarker) -> trio.CancelScope:
        scope = trio.CancelScope()

        async def ask() -> None:
            with scope:
                self.answers[asked.producer_id] = await self._queues.ask(node_id, asked)

        self._nursery.start_soon(ask)
        return scope


def in_queues(main: Callable[[Brokers, Asking], Awaitable[None]]) -> None:
    async def run() -> None:
        brokers = Brokers()
        queues = MarkerQueues(cast(InterBroker, brokers))
        async with trio.open_nursery() as nursery:
            await nursery.start(queues.run)
            await main(brokers, Asking(nursery, queues))
            nursery.cancel_scope.cancel()

    in_virtual_time(run)


def test_a_slow_broker_delays_nobody_elses_markers() -> None:
    async def main(brokers: Brokers, asking: Asking) -> None:
        for producer_id in range(100):
            asking.start(SLOW, marker(producer_id))
        await trio.testing.wait_all_tasks_blocked()
        asking.start(FAST, marker(1000))
        await trio.testing.wait_all_tasks_blocked()
        assert list(asking.answers) == [1000]

    in_queues(main)


def test_a_marker_that_takes_long_leaves_room_for_others_at_the_same_broker() -> None:
    async def main(brokers: Brokers, asking: Asking) -> None:
        asking.start(SLOW, marker(1))
        await trio.testing.wait_all_tasks_blocked()
        asking.start(SLOW, marker(2))
        await trio.testing.wait_all_tasks_blocked()
        assert brokers.asked[SLOW] == [[1], [2]]

    in_queues(main)


def test_what_waits_goes_in_one_request_and_few_are_in_flight() -> None:
    async def main(brokers: Brokers, asking: Asking) -> None:
        for producer_id in range(REQUESTS_IN_FLIGHT + 500):
            asking.start(SLOW, marker(producer_id))
            if producer_id < REQUESTS_IN_FLIGHT:
                await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
        assert len(brokers.asked[SLOW]) == REQUESTS_IN_FLIGHT
        brokers.may_answer[SLOW].set()
        await trio.testing.wait_all_tasks_blocked()
        assert len(brokers.asked[SLOW]) == REQUESTS_IN_FLIGHT + 1
        assert len(asking.answers) == REQUESTS_IN_FLIGHT + 500
        for producer_id, result in asking.answers.items():
            assert result is not None
            assert result.producer_id == producer_id

    in_queues(main)


def test_a_request_holds_so_many_partitions_and_one_transaction_whatever_it_has() -> None:
    async def main(brokers: Brokers, asking: Asking) -> None:
        for first in range(REQUESTS_IN_FLIGHT):
            asking.start(SLOW, marker(first))
            await trio.testing.wait_all_tasks_blocked()
        for producer_id, partitions in [(10, 600), (11, 600), (12, 3 * MOST_PARTITIONS), (13, 1)]:
            asking.start(SLOW, marker(producer_id, partitions))
            await trio.testing.wait_all_tasks_blocked()
        brokers.may_answer[SLOW].set()
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(brokers.asked[SLOW][REQUESTS_IN_FLIGHT:]) == [[10], [11], [12], [13]]

    in_queues(main)


def test_two_decisions_about_a_producer_are_two_requests() -> None:
    """An answer names the producer only."""

    async def main(brokers: Brokers, asking: Asking) -> None:
        for first in range(REQUESTS_IN_FLIGHT):
            asking.start(SLOW, marker(first))
            await trio.testing.wait_all_tasks_blocked()
        asking.start(SLOW, marker(7, epoch=1))
        asking.start(SLOW, marker(7, epoch=2))
        asking.start(SLOW, marker(8))
        await trio.testing.wait_all_tasks_blocked()
        brokers.may_answer[SLOW].set()
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(map(sorted, brokers.asked[SLOW][REQUESTS_IN_FLIGHT:])) == [[7], [7, 8]]

    in_queues(main)


@pytest.mark.parametrize("is_gone", [True, False])
def test_nobody_is_sent_who_does_not_ask_any_more(is_gone: bool) -> None:
    """Nor does anybody wait for ever whose broker is gone."""

    async def main(brokers: Brokers, asking: Asking) -> None:
        brokers.is_gone = is_gone
        for first in range(REQUESTS_IN_FLIGHT):
            asking.start(SLOW, marker(first))
            await trio.testing.wait_all_tasks_blocked()
        given_up = asking.start(SLOW, marker(10))
        asking.start(SLOW, marker(11))
        await trio.testing.wait_all_tasks_blocked()
        given_up.cancel()
        await trio.testing.wait_all_tasks_blocked()
        brokers.may_answer[SLOW].set()
        await trio.testing.wait_all_tasks_blocked()
        assert brokers.asked[SLOW][REQUESTS_IN_FLIGHT:] == [[11]]
        assert [result is None for result in asking.answers.values()] == [is_gone] * (REQUESTS_IN_FLIGHT + 1)

    in_queues(main)


def test_a_marker_that_comes_while_the_node_ends_is_nobodys_failure() -> None:
    """A task of the coordinator may have its turn behind the end of the queues, and before it hears of its own."""

    async def run() -> None:
        brokers = Brokers()
        queues = MarkerQueues(cast(InterBroker, brokers))
        asked: list[object] = []

        async def ask(node_id: int) -> None:
            asked.append(await queues.ask(node_id, marker(node_id)))

        async with trio.open_nursery() as asking:
            async with trio.open_nursery() as nursery:
                await nursery.start(queues.run)
                for _ in range(REQUESTS_IN_FLIGHT + 1):
                    asking.start_soon(ask, SLOW)
                    await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
            for node_id in (SLOW, FAST):
                asking.start_soon(ask, node_id)
        assert asked == [None] * (REQUESTS_IN_FLIGHT + 3)
        assert brokers.asked[FAST] == []

    in_virtual_time(run)
