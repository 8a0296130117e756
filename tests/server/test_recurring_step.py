"""A recurring step is made at its interval, and at once for whoever asks."""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from pykbroker.server.runtime.recurring_step import RecurringStep


def test_it_comes_at_its_interval() -> None:
    made: list[float] = []

    async def step() -> None:
        made.append(trio.current_time())

    async def run() -> None:
        began = trio.current_time()
        with trio.move_on_after(25):
            await RecurringStep(step).run(1, 10)
        assert [each - began for each in made] == [1, 11, 21]

    trio.run(run, clock=MockClock(autojump_threshold=0))


def test_whoever_asks_waits_for_a_step_that_begins_later() -> None:
    begun: list[int] = []
    go_on = [trio.Event(), trio.Event()]

    async def step() -> None:
        begun.append(len(begun))
        await go_on[begun[-1]].wait()

    async def run() -> None:
        recurring = RecurringStep(step)
        done = trio.Event()

        async def ask() -> None:
            await recurring.at_once()
            done.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(recurring.run, 0, 1000)
            await wait_all_tasks_blocked()
            assert begun == [0]
            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            go_on[0].set()
            await wait_all_tasks_blocked()
            assert begun == [0, 1]
            assert not done.is_set(), "the first step had begun before"
            go_on[1].set()
            await done.wait()
            nursery.cancel_scope.cancel()
        with trio.fail_after(1):
            await recurring.at_once()  # nobody is left to make it

    trio.run(run)


def test_whoever_asks_early_has_the_first_step_at_once() -> None:
    made: list[float] = []

    async def step() -> None:
        made.append(trio.current_time())

    async def run() -> None:
        recurring = RecurringStep(step)
        async with trio.open_nursery() as nursery:
            with trio.fail_after(5):
                async with trio.open_nursery() as asking:
                    asking.start_soon(recurring.at_once)
                    await wait_all_tasks_blocked()
                    nursery.start_soon(recurring.run, 1000, 1000)
            nursery.cancel_scope.cancel()
        assert len(made) == 1

    trio.run(run)
