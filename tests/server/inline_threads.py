"""Threads for tests: blocking work runs on the event loop, at once or when the test lets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class InlineThreads:
    async def run(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        await trio.lowlevel.checkpoint()
        return fn(*args)


class GatedThreads(InlineThreads):
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
