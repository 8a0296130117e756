"""Threads for tests: blocking work runs on the event loop when the test lets it."""

from __future__ import annotations

from collections.abc import Callable

import trio

from pykbroker.server.runtime.threads import OnTheLoop, T, Ts


class GatedThreads(OnTheLoop):
    """Nothing runs while it is shut."""

    def __init__(self) -> None:
        self._gate = trio.Event()

    def open(self) -> None:
        self._gate.set()

    def shut(self) -> None:
        self._gate = trio.Event()

    async def run(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        await self._gate.wait()
        return await super().run(fn, *args)
