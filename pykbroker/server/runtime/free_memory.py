"""Free memory goes back to the operating system, where the C library would keep it.

glibc gives back what is free at the end of a heap, and each thread that decodes or decompresses has a heap of its own:
one small object at its end keeps the tens of megabytes before it, for as long as the process lives. `malloc_trim` gives
back every free page. It takes a tenth of a millisecond where there is nothing, and some milliseconds where there is
much, in a thread.

A large block is a mapping of its own: the system moves its pages when it grows, and has them back when it is freed.
glibc calls large what is larger than any block that was freed before; then the buffer of a frame of ten megabytes is
copied each time it grows.

The settings belong to the whole process, so only a program that is nothing but a broker has this: `pykbroker start`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Awaitable, Callable

import trio

from .threads import Threads

LARGE_BLOCK_BYTES = 1 << 20
_KEPT_AT_THE_END_BYTES = 32 << 20
"""Of a heap, until `malloc_trim`: to give it back and to have it anew with each request would cost page faults."""
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
"""From glibc's malloc.h."""
_EVERY_S = 10.0


def trimming() -> Callable[[], object] | None:
    """Return a call of glibc's `malloc_trim` that keeps no byte more than it must; None with another C library."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return None if trim is None else lambda: trim(0)


def map_large_blocks() -> None:
    """Make blocks from LARGE_BLOCK_BYTES on mappings of their own from now on, with glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_AT_THE_END_BYTES)


async def give_back_free_memory(
    threads: Threads,
    trim: Callable[[], object] | None,
    sleep: Callable[[float], Awaitable[None]] = trio.sleep,
) -> None:
    """Give back free memory every ten seconds, until the surrounding scope is cancelled; return at once where there is
    nothing to call.
    """
    while trim is not None:
        await sleep(_EVERY_S)
        await threads.run(trim)
