"""Threads as a seam: where blocking work of one node goes (fsync, deletion, recovery, reads of cold pages).

A thread hop costs about 55 µs, an append to the page cache 10 µs: the hot path stays on the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, TypeVarTuple, Unpack

import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Threads(Protocol):
    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """Call `fn` away from the event loop. Once started it runs to its end, whoever is cancelled meanwhile."""
        ...


class WorkerThreads:
    """Trio's worker threads, at most `limit` of this node's at a time."""

    def __init__(self, limit: int = 8) -> None:
        self._limiter = trio.CapacityLimiter(limit)

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        return await trio.to_thread.run_sync(fn, *args, limiter=self._limiter)


class OneAtATime:
    """For what runs Python all the time, in the order in which it comes. More of it at once would be no faster, and
    would take the interpreter from the event loop more often.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._turn = trio.Lock()

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        async with self._turn:
            return await self._threads.run(fn, *args)
