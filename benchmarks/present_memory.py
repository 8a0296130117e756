"""Memory that is there before a measure begins, so that none pays for getting it.

A machine whose memory belongs to a host gives back what was free for a while. The next program that writes there waits
until the host has brought each page of 4 kB again: 8 µs of system time in place of 0.2. A broker that writes files
pays so for the page cache, and a row of large batches reads a quarter of what it is, whichever broker runs.

So before a row: what the last one wrote is gone, the disk has all of the rest, and memory was mapped, touched and given
back. Then it is free, and present.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

import psutil

MOST_BYTES = 4 << 30
"""A row should write less than this."""
LEFT_BYTES = 1 << 30
"""For the broker and all others."""
GONE_S = 60.0
POLL_S = 0.1


def make_memory_present(directory: Path) -> None:
    """directory: the broker's; it has deleted topics, whose files go a while after."""
    deadline_s = time.monotonic() + GONE_S
    while _has_deleted(directory):
        assert time.monotonic() < deadline_s, "the files of a deleted topic are still there"
        time.sleep(POLL_S)
    os.sync()
    size = min(MOST_BYTES, int(psutil.virtual_memory().available) - LEFT_BYTES)
    if size > 0:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)
        mmap.mmap(-1, size, flags=flags).close()


def _has_deleted(directory: Path) -> bool:
    return any(
        name.endswith(("-delete", ".deleted")) for _, *names in os.walk(directory) for of in names for name in of
    )
