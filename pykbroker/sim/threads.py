"""Threads of a simulated node: the work is done inline, after a virtual time that the seed decides."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple, Unpack

import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


_cpu_s = 0.0


def cpu_of_threads_s() -> float:
    """CPU that real threads would have spent beside the event loop, in all simulations of this process so far."""
    return _cpu_s


class SimulatedThreads:
    def __init__(self, rng: random.Random, *, longest_ms: float = 5.0) -> None:
        self._rng = rng
        self._longest_ms = longest_ms

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        await trio.sleep(self._rng.uniform(0, self._longest_ms) / 1000)
        global _cpu_s
        start_s = time.thread_time()
        try:
            return fn(*args)
        finally:
            _cpu_s += time.thread_time() - start_s
