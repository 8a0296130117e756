"""Threads are a seam: the blocking work of one node goes there (fsync, deletion, recovery, reads of cold pages).

A thread hop costs about 55 µs, an append to the page cache 10 µs: the hot path stays on the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, TypeVarTuple, Unpack, cast

import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Threads(Protocol):
    """Threads run what blocks, away from the event loop."""

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """Call `fn` away from the event loop. Once started it runs to its end, whoever is cancelled meanwhile."""
        ...


class WorkerThreads:
    """These are Trio's worker threads, at most `limit` of this node's at a time."""

    def __init__(self, limit: int = 8) -> None:
        self._limiter = trio.CapacityLimiter(limit)

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """Call `fn` in a thread.

        What it raises comes here as a value: where it goes through Trio it ends up in a cycle with the frames of its
        traceback, whose memory (a batch of megabytes that was refused) waits for the garbage collector then.
        """
        failed: list[Exception] = []

        def call() -> T | None:
            try:
                return fn(*args)
            except Exception as error:
                failed.append(error)
                return None

        result = await trio.to_thread.run_sync(call, limiter=self._limiter)
        if failed:
            raise failed.pop()
        return cast("T", result)


class OnTheLoop:
    """No thread at all: for what waits for no device, such as writes to a disk that syncs nothing."""

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        await trio.lowlevel.checkpoint()
        return fn(*args)


class OneAtATime:
    """One call at a time runs in a thread, in the order of the calls, where each runs Python all the time. More of them
    at once would be no faster, and would take the interpreter from the event loop more often.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._turn = trio.Lock()

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        async with self._turn:
            return await self._threads.run(fn, *args)
