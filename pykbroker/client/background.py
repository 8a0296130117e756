"""A task that runs beside a block of code and ends with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def background(task: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """The block's own failure comes out as it is, not wrapped in a group; the task's failure ends the block."""
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(task)
        try:
            yield
        except Exception as error:
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
