"""What would take the interpreter from the event loop again and again is done by one thread."""

from __future__ import annotations

from collections.abc import Callable

import trio

from pykbroker.server.runtime.threads import OneAtATime, OnTheLoop, T, Ts


class CountingThreads(OnTheLoop):
    def __init__(self) -> None:
        self.at_once = self.most_at_once = 0

    async def run(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await super().run(fn, *args)
        finally:
            self.at_once -= 1


def test_jobs_are_done_one_at_a_time_and_one_that_fails_lets_the_next_one_come() -> None:
    threads = CountingThreads()
    alone = OneAtATime(threads)
    done: list[int] = []
    failed: list[int] = []

    def work(number: int) -> None:
        if number == 3:
            raise ValueError
        done.append(number)

    async def ask(number: int) -> None:
        try:
            await alone.run(work, number)
        except ValueError:
            failed.append(number)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(ask, number)

    trio.run(main)
    assert (sorted(done), failed) == ([number for number in range(20) if number != 3], [3])
    assert threads.most_at_once == 1


def test_who_leaves_before_its_turn_takes_none() -> None:
    threads = CountingThreads()
    alone = OneAtATime(threads)
    done: list[str] = []

    async def ask(name: str, scope: trio.CancelScope) -> None:
        with scope:
            await alone.run(done.append, name)

    async def main() -> None:
        scopes = {name: trio.CancelScope() for name in "abc"}
        async with trio.open_nursery() as nursery:
            for name, scope in scopes.items():
                nursery.start_soon(ask, name, scope)
            scopes["b"].cancel()

    trio.run(main)
    assert sorted(done) == ["a", "c"]
