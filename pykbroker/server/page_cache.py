"""Whether a file's bytes lie in the page cache, and how to bring them there.

`sendfile` blocks on a page that is on disk only, and with it the whole event loop. `preadv` with `RWF_NOWAIT` answers
without blocking; pages are probed at the distance of the kernel's read-ahead, not one by one. Where a file system does
not know the flag (tmpfs on older kernels, other systems), everything counts as cached.
"""

from __future__ import annotations

import os

_PROBE_DISTANCE_BYTES = 128 * 1024
_READ_AHEAD_BYTES = 4 << 20
_RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)


def uncached_extent(descriptor: int, position: int, end: int) -> tuple[int, int] | None:
    """The part of [position, end) from the first probe that is not cached; None where all probes are."""
    if not _RWF_NOWAIT:
        return None
    scratch = [bytearray(1)]
    for probe in (*range(position, end, _PROBE_DISTANCE_BYTES), end - 1):
        try:
            os.preadv(descriptor, scratch, probe, _RWF_NOWAIT)
        except BlockingIOError:
            return probe, end
        except OSError:
            return None
    return None


def read_cached(descriptor: int, position: int, size: int) -> bytearray | None:
    """The bytes, or None where not all of them are cached or the system cannot tell."""
    data = bytearray(size)
    try:
        count = os.preadv(descriptor, [data], position, _RWF_NOWAIT) if _RWF_NOWAIT else 0
    except OSError:
        return None
    return data if count == size else None


def warm(descriptor: int, position: int, end: int) -> None:
    """Read [position, end) so that it is cached, and ask the kernel for what follows. It blocks: for a thread."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, end, _READ_AHEAD_BYTES, os.POSIX_FADV_WILLNEED)
    scratch = bytearray(min(_PROBE_DISTANCE_BYTES, end - position))
    while position < end:
        count = os.preadv(descriptor, [scratch], position)
        if count == 0:
            return
        position += count
