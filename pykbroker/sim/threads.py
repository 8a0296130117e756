"""Threads of a simulated node: they take turns with the event loop, and with each other, at every file operation."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar, TypeVarTuple, Unpack

import trio

from .interleaving import InterleavedCall
from .process import ProcessDied

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_LONGEST_START_S = 0.005

_STOPS = ((0.3, 0.0), (0.16, 0.001), (0.018, 0.02), (0.001, 1.0))
"""How long a thread stands still at a file operation: the probability, and the longest time in seconds. Mostly it goes
on at once: a stop costs as much as some operations do.
"""


_cpu_s = 0.0


def cpu_of_threads_s() -> float:
    """CPU that was spent `beside_the_loop`, in all simulations of this process so far."""
    return _cpu_s


@contextmanager
def beside_the_loop() -> Iterator[None]:
    """Count what is computed meanwhile as a thread's, a client's or an oracle's, and not as the loop's."""
    global _cpu_s
    start_s = time.thread_time()
    try:
        yield
    finally:
        _cpu_s += time.thread_time() - start_s


class SimulatedThreads:
    """The threads of one node: at most `limit` run at a time. The seed draws who waits how long, and where.

    A function that has begun runs to its end, whoever is cancelled meanwhile, unless the process dies. are_calm: nobody
    stands still; a function is done at once when it has begun.
    """

    def __init__(self, rng: random.Random, limit: int = 8, *, are_calm: bool = False) -> None:
        self.are_calm = are_calm
        self._rng = rng
        self._limiter = trio.CapacityLimiter(limit)
        self._death = trio.Event()

    def die(self) -> None:
        """Let nobody stand still any more: functions meet ProcessDied at their next file operation."""
        self._death.set()

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """Raises ProcessDied where the process dies before the function begins."""
        call = InterleavedCall(partial(fn, *args), self._draw_s)
        async with self._limiter:
            with trio.CancelScope(shield=True):
                await self._stand_still(self._rng.uniform(0, _LONGEST_START_S))
                if self._death.is_set():
                    raise ProcessDied("in front of a thread's work")
                while (stop_s := _step(call)) is not None:
                    await self._stand_still(stop_s)
            return call.result

    async def _stand_still(self, time_s: float) -> None:
        if time_s:
            with trio.move_on_after(time_s):
                await self._death.wait()
        else:
            await trio.lowlevel.checkpoint()

    def _draw_s(self) -> float | None:
        if self.are_calm:
            return None
        drawn = self._rng.random()
        for probability, longest_s in _STOPS:
            if drawn < probability:
                return longest_s * drawn / probability
            drawn -= probability
        return None


def _step(call: InterleavedCall[T]) -> float | None:
    with beside_the_loop():
        return call.step()
