"""Few tasks, a hundred at most, do many waits at the same time: to begin ten thousand would hold the loop for long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, TypeVar

import trio

TASKS: Final = 100
_AT_ONCE: Final = 50

T = TypeVar("T")


async def in_few_tasks(entries: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Return when the work is done for each entry. A task has the next entry when it is done with one."""
    waiting = list(entries)
    if len(waiting) == 1:
        await work(waiting[0])
        return
    rest = iter(waiting)
    async with trio.open_nursery() as nursery:
        for _ in range(min(len(waiting), TASKS)):
            nursery.start_soon(_work, rest, work)


async def _work(rest: Iterator[T], work: Callable[[T], Awaitable[None]]) -> None:
    for number, entry in enumerate(rest, 1):
        await work(entry)
        if not number % _AT_ONCE:  # perhaps there was nothing to wait for
            await trio.lowlevel.checkpoint()
