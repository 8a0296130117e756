"""The page cache is probed for a file's bytes, which a thread brings there where they are missing.

`sendfile` blocks on a page that is on disk only, and with it the whole event loop. `preadv` with `RWF_NOWAIT` answers
without blocking; pages are probed at the distance of the kernel's read-ahead, not one by one. Where a file system does
not know the flag (tmpfs on older kernels, other systems), everything counts as cached.
"""

from __future__ import annotations

import os

_PROBE_DISTANCE_BYTES = 128 * 1024
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
    """Bring [position, end) into the page cache. It blocks: for a thread.

    Sequential reads let the kernel read ahead in large folios, which cost half of what the single pages cost that
    POSIX_FADV_WILLNEED would bring; and what goes to /dev/null this way is never copied.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        while position < end and (count := os.sendfile(nowhere, descriptor, position, end - position)):
            position += count
    finally:
        os.close(nowhere)
