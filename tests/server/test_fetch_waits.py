"""Waiting fetches: together they hold no more than so many partitions, and the greediest is answered first."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from pykbroker.server.replicas.fetch_waits import FEW_PARTITIONS, FetchWaits


async def wait(waits: FetchWaits, partitions: int, ended: list[int]) -> None:
    with waits.room(partitions):
        await trio.sleep_forever()
    ended.append(partitions)


def test_the_greediest_of_those_that_wait_is_answered_at_once() -> None:
    async def run() -> None:
        waits, ended = FetchWaits(1000), list[int]()
        async with trio.open_nursery() as nursery:
            for partitions in (300, 500, 150, 150):
                nursery.start_soon(wait, waits, partitions, ended)
                await wait_all_tasks_blocked()
            assert ended == [500]
            assert waits.partitions == 600
            nursery.start_soon(wait, waits, 900, ended)
            await wait_all_tasks_blocked()
            assert ended == [500, 900], "who wants more than everybody else does not wait"
            nursery.cancel_scope.cancel()
        assert waits.partitions == 0

    trio.run(run)


def test_a_fetch_of_few_partitions_always_waits() -> None:
    async def run() -> None:
        waits, ended = FetchWaits(FEW_PARTITIONS), list[int]()
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(wait, waits, FEW_PARTITIONS, ended)
            await wait_all_tasks_blocked()
            assert ended == []
            nursery.cancel_scope.cancel()

    trio.run(run)
