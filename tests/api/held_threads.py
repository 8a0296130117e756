"""Threads whose jobs end when the test lets them, so that the world may change while a request waits for one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked


class HeldThreads:
    """Jobs begin, and end when the test lets them."""

    def __init__(self) -> None:
        self.begun = 0
        self._gate = trio.Event()

    def let_go(self) -> None:
        self._gate.set()

    async def run(self, fn: Callable[..., Any], *args: Any) -> Any:
        self.begun += 1
        await self._gate.wait()
        return fn(*args)


async def do_meanwhile(threads: HeldThreads, call: Callable[[], Awaitable[None]], meanwhile: Callable[[], Any]) -> None:
    """`meanwhile` is done while a thread has the first job of the call."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await wait_all_tasks_blocked()
        assert threads.begun == 1
        meanwhile()
        threads.let_go()
