"""Memory that nobody uses goes back to the system, where the C library keeps it otherwise.

glibc gives back what is free at the end of a heap, and each thread that decodes or decompresses has a heap of its own:
one small object at its end keeps the tens of megabytes before it, for as long as the process lives. `malloc_trim` gives
back every free page. It takes a tenth of a millisecond where there is nothing, and some milliseconds where there is
much, in a thread.
"""

from __future__ import annotations

import ctypes
from collections.abc import Awaitable, Callable

import trio

from .threads import Threads

_EVERY_S = 10.0


def trimming() -> Callable[[], object] | None:
    """glibc's `malloc_trim`, which keeps no byte more than it must; None with another C library."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return None if trim is None else lambda: trim(0)


async def give_back_free_memory(
    threads: Threads,
    trim: Callable[[], object] | None,
    sleep: Callable[[float], Awaitable[None]] = trio.sleep,
) -> None:
    """Every ten seconds, until the surrounding scope is cancelled; returns at once where there is nothing to call."""
    while trim is not None:
        await sleep(_EVERY_S)
        await threads.run(trim)
