"""Places for many clients: who has had the least comes next, and nobody keeps a place by leaving."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.server.runtime.fair_queue import FairLevel, FairQueue, FairShare


def run(test: Callable[[], Awaitable[None]]) -> None:
    trio.run(test)


async def work(queue: FairQueue, client: FairShare, name: str, done: list[str], *, times: int, cost: float = 1) -> None:
    for _ in range(times):
        await queue.enter(client)
        try:
            await trio.lowlevel.checkpoint()
            done.append(name)
        finally:
            queue.leave(client, cost)


def test_a_client_that_comes_late_has_its_share_at_once() -> None:
    async def main() -> None:
        queue, done = FairQueue(1, FairLevel()), list[str]()
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                greedy = FairShare()
                nursery.start_soon(lambda greedy=greedy: work(queue, greedy, "greedy", done, times=50))
            while len(done) < 500:
                await trio.lowlevel.checkpoint()
            nursery.start_soon(lambda: work(queue, FairShare(), "modest", done, times=5))
        assert done[500 : 500 + 6 * 21].count("modest") == 5

    run(main)


def test_who_pays_more_comes_less_often() -> None:
    async def main() -> None:
        queue, done = FairQueue(1, FairLevel()), list[str]()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: work(queue, FairShare(), "dear", done, times=10, cost=10))
            nursery.start_soon(lambda: work(queue, FairShare(), "cheap", done, times=100, cost=1))
        assert 30 <= done[:55].count("cheap") <= 54

    run(main)


def test_clients_that_always_come_anew_do_not_keep_one_waiting_that_stays() -> None:
    async def main() -> None:
        queue, done, steady = FairQueue(1, FairLevel()), list[str](), FairShare()

        async def newcomers() -> None:
            for _ in range(200):
                await work(queue, FairShare(), "new", done, times=1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: work(queue, steady, "steady", done, times=20))
            for _ in range(3):
                nursery.start_soon(newcomers)
        assert done[:150].count("steady") == 20

    run(main)


@pytest.mark.parametrize("is_granted", [False, True])
def test_a_place_goes_on_where_whoever_waited_for_it_is_cancelled(is_granted: bool) -> None:
    async def main() -> None:
        queue, done = FairQueue(1, FairLevel()), list[str]()
        holder = FairShare()
        await queue.enter(holder)
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as inner:
                    inner.start_soon(lambda: work(queue, FairShare(), "cancelled", done, times=1))
                    await wait_all_tasks_blocked()
                    nursery.start_soon(lambda: work(queue, FairShare(), "next", done, times=1))
                    await wait_all_tasks_blocked()
                    if is_granted:
                        queue.leave(holder, 1)
                    scope.cancel()
            if not is_granted:
                assert queue.waiting == 1
                queue.leave(holder, 1)
        assert done[-1] == "next"
        await queue.enter(holder)

    run(main)
