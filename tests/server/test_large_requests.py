"""Large requests: a total size of them is in hand, and the others wait in their order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.protocol.framing import SIZE_BYTES, encode_request, encode_response
from pykbroker.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from pykbroker.server.network.handlers import ConnectionState, HandlerTable, RequestContext
from pykbroker.server.network.large_requests import Admission, LargeRequests
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.runtime.threads import OnTheLoop, T, Ts

from .serving import dispatcher_of


async def hold(requests: LargeRequests, size: int, entered: list[int], until: trio.Event) -> None:
    admission = await requests.enter(size)
    try:
        entered.append(size)
        await until.wait()
    finally:
        admission.leave()


def test_requests_are_let_in_in_their_order_as_far_as_there_is_room() -> None:
    async def run() -> None:
        requests, entered, events = LargeRequests(100), [], [trio.Event() for _ in range(5)]
        async with trio.open_nursery() as nursery:
            for size, event in zip((60, 30, 50, 10, 40), events, strict=True):
                nursery.start_soon(hold, requests, size, entered, event)
                await wait_all_tasks_blocked()
            assert entered == [60, 30], "10 would fit, but 50 came before"
            events[0].set()
            await wait_all_tasks_blocked()
            assert sorted(entered) == [10, 30, 50, 60]
            for event in events:
                event.set()
        assert requests.in_hand_bytes == 0

    trio.run(run)


def test_a_request_that_is_larger_than_the_room_is_let_in_alone() -> None:
    async def run() -> None:
        requests, entered = LargeRequests(100), []
        first, second = trio.Event(), trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hold, requests, 1, entered, first)
            await wait_all_tasks_blocked()
            nursery.start_soon(hold, requests, 1000, entered, second)
            await wait_all_tasks_blocked()
            assert entered == [1]
            first.set()
            await wait_all_tasks_blocked()
            assert entered == [1, 1000]
            second.set()

    trio.run(run)


def test_a_client_that_leaves_while_it_waits_takes_no_room() -> None:
    async def run() -> None:
        requests, entered, event = LargeRequests(100), [], trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hold, requests, 100, entered, event)
            await wait_all_tasks_blocked()
            async with trio.open_nursery() as leaving:
                leaving.start_soon(hold, requests, 70, entered, event)
                await wait_all_tasks_blocked()
                leaving.cancel_scope.cancel()
            nursery.start_soon(hold, requests, 80, entered, event)
            await wait_all_tasks_blocked()
            event.set()
        assert entered == [100, 80]
        assert requests.in_hand_bytes == 0

    trio.run(run)


def test_a_client_that_leaves_as_it_is_let_in_gives_its_room_back() -> None:
    async def run() -> None:
        requests, entered, event = LargeRequests(100), [], trio.Event()
        first: Admission = await requests.enter(100)
        async with trio.open_nursery() as leaving:
            leaving.start_soon(hold, requests, 100, entered, event)
            await wait_all_tasks_blocked()
            first.leave()
            leaving.cancel_scope.cancel()
        assert requests.in_hand_bytes == 0
        assert (await requests.enter(100)) is not None

    trio.run(run)


def test_leaving_twice_gives_room_once() -> None:
    async def run() -> None:
        requests = LargeRequests(100)
        first = await requests.enter(60)
        await requests.enter(30)
        first.leave()
        first.leave()
        assert requests.in_hand_bytes == 30

    trio.run(run)


class NotingThreads(OnTheLoop):
    def __init__(self) -> None:
        self.ran: list[object] = []

    async def run(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        self.ran.append(fn)
        return await super().run(fn, *args)


@pytest.mark.parametrize(("topics", "is_large"), [(1, False), (2000, True)])
def test_the_answer_to_a_large_request_is_packed_in_a_thread(topics: int, is_large: bool) -> None:
    """Also where its handler took no turns of its own: the controller did."""
    table, threads = HandlerTable("broker"), NotingThreads()

    @table.handles(CreateTopicsRequest, needs=NOTHING)
    async def create(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
        return CreateTopicsResponse()

    dispatcher = dispatcher_of(table, threads)
    names = [CreatableTopic(name=f"topic-{number}") for number in range(topics)]
    frame = memoryview(encode_request(CreateTopicsRequest(topics=names), 7, 1, "test"))[SIZE_BYTES:]
    answer = trio.run(dispatcher.answer, frame, ConnectionState("PLAINTEXT", "127.0.0.1"))
    assert answer is not None
    assert (encode_response in threads.ran) is is_large
