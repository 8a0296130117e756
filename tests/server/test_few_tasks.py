"""Many waits in few tasks."""

from __future__ import annotations

import pytest
import trio

from pykbroker.server.runtime.few_tasks import TASKS, in_few_tasks

ENTRIES = 5000


def test_each_entry_is_worked_on_once_and_few_at_a_time() -> None:
    done: list[int] = []
    busy = most_busy = 0

    async def work(entry: int) -> None:
        nonlocal busy, most_busy
        busy += 1
        most_busy = max(most_busy, busy)
        await trio.lowlevel.checkpoint()
        busy -= 1
        done.append(entry)

    trio.run(in_few_tasks, range(ENTRIES), work)
    assert sorted(done) == list(range(ENTRIES))
    assert most_busy == TASKS


def test_work_that_waits_for_nothing_leaves_the_loop_to_others() -> None:
    done = most_in_a_turn = 0

    async def work(entry: int) -> None:
        nonlocal done
        done += 1

    async def others(scope: trio.CancelScope) -> None:
        nonlocal most_in_a_turn
        while True:
            before = done
            await trio.lowlevel.checkpoint()
            most_in_a_turn = max(most_in_a_turn, done - before)

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(others, nursery.cancel_scope)
            await in_few_tasks(range(TASKS * 1000), work)
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    trio.run(scenario)
    assert done == TASKS * 1000
    assert most_in_a_turn <= done / 4


def test_a_failure_ends_the_rest() -> None:
    done: list[int] = []

    async def work(entry: int) -> None:
        if entry == 3:
            raise OSError
        await trio.lowlevel.checkpoint()
        done.append(entry)

    with pytest.raises(ExceptionGroup):
        trio.run(in_few_tasks, range(ENTRIES), work)
    assert len(done) < ENTRIES


def test_nothing_is_done_for_no_entry() -> None:
    async def work(entry: int) -> None:
        raise AssertionError

    trio.run(in_few_tasks, [], work)
