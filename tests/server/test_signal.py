"""A signal wakes the loop that owns it and callers who wait for a condition, and no set is missed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
from trio.testing import MockClock, assert_checkpoints, wait_all_tasks_blocked

from pykbroker.server.runtime.signal import Signal

MANY = 10_000


def run(test: Callable[[], Awaitable[None]]) -> None:
    trio.run(test, clock=MockClock(autojump_threshold=0))


async def returns(wait: Callable[[], Awaitable[None]]) -> bool:
    """Whether the wait is over before a second has passed."""
    with trio.move_on_after(1) as scope:
        await wait()
    return not scope.cancelled_caught


def test_a_set_before_the_wait_is_kept_and_taken_once() -> None:
    async def main() -> None:
        signal = Signal()
        assert not await returns(signal.wait)
        signal.set()
        signal.set()
        assert await returns(signal.wait)
        assert not await returns(signal.wait)

    run(main)


def test_the_loop_sees_every_set_that_comes_while_it_works() -> None:
    async def main() -> None:
        signal, todo, done = Signal(), list[int](), list[int]()

        async def loop() -> None:
            while len(done) < 3 * MANY:
                await signal.wait()
                while todo:
                    done.append(todo.pop())
                    if not len(done) % 7:
                        await trio.lowlevel.checkpoint()
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(loop)
            for number in range(3 * MANY):
                todo.append(number)
                signal.set()
                if not number % 5:
                    await trio.lowlevel.checkpoint()
        assert sorted(done) == list(range(3 * MANY))

    run(main)


def test_sets_between_waking_and_running_are_one() -> None:
    async def main() -> None:
        signal, turns = Signal(), 0

        async def loop() -> None:
            nonlocal turns
            while True:
                await signal.wait()
                turns += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(loop)
            await wait_all_tasks_blocked()
            for _ in range(3):
                signal.set()
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert turns == 1

    run(main)


def test_what_is_cleared_is_not_waited_for() -> None:
    async def main() -> None:
        signal = Signal()
        signal.set()
        signal.clear()
        assert not await returns(signal.wait)
        signal.set()
        assert await returns(signal.wait)

    run(main)


def test_a_wait_ends_when_its_time_is_over() -> None:
    async def main() -> None:
        signal = Signal()
        begun_s = trio.current_time()
        await signal.wait(2.5)
        assert trio.current_time() - begun_s == 2.5
        assert not await returns(signal.wait)
        await signal.wait(0)

    run(main)


def test_a_cancelled_wait_leaves_the_set_to_the_next_one() -> None:
    async def main() -> None:
        signal = Signal()
        with trio.CancelScope() as scope:
            scope.cancel()
            signal.set()
            await signal.wait()
        assert scope.cancelled_caught
        assert await returns(signal.wait)

    run(main)


def test_whoever_is_cancelled_while_waiting_keeps_nobody_from_going_on() -> None:
    async def main() -> None:
        signal, woken, scope = Signal(), list[str](), trio.CancelScope()

        async def wait(name: str, scope: trio.CancelScope) -> None:
            with scope:
                await signal.next()
                woken.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, "cancelled", scope)
            nursery.start_soon(wait, "patient", trio.CancelScope())
            await wait_all_tasks_blocked()
            scope.cancel()
            signal.set()
        assert "patient" in woken

    run(main)


def test_a_set_wakes_all_who_wait() -> None:
    async def main() -> None:
        signal, woken = Signal(), 0

        async def wait() -> None:
            nonlocal woken
            await signal.next()
            woken += 1

        async with trio.open_nursery() as nursery:
            for _ in range(MANY):
                nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            signal.set()
        assert woken == MANY

    run(main)


def test_next_is_for_what_comes_after_the_call() -> None:
    async def main() -> None:
        signal = Signal()
        signal.set()
        assert not await returns(signal.next)

    run(main)


def test_next_since_a_look_returns_at_once_where_something_came_meanwhile() -> None:
    async def main() -> None:
        signal = Signal()
        looked = signal.count
        assert not await returns(lambda: signal.next(looked))
        signal.set()
        assert await returns(lambda: signal.next(looked))
        assert await returns(lambda: signal.next(looked))
        assert not await returns(lambda: signal.next(signal.count))

    run(main)


def test_a_wait_gives_the_loop_to_others_even_where_it_is_over_at_once() -> None:
    async def main() -> None:
        signal = Signal()
        signal.set()
        with assert_checkpoints():
            await signal.wait()
        with assert_checkpoints():
            await signal.next(signal.count - 1)

    run(main)
