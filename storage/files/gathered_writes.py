"""Writing many buffers behind each other in as few system calls as the operating system takes.

One call takes at most IOV_MAX buffers and refuses more (EINVAL); of what it takes it may write a part only, for lack of
room or because the bytes are more than Linux writes at a time. Every disk, real or simulated, writes through here, so
that none takes what another one would refuse.
"""

import errno
from collections.abc import Callable, Sequence
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

IOV_MAX = 1024
"""Linux's UIO_MAXIOV, and that of every other system that has `writev`."""
MAX_BYTES = 0x7FFF_F000
"""What Linux writes in one call at most (MAX_RW_COUNT)."""


def write_all(parts: Sequence[Buffer], write: Callable[[Sequence[Buffer], int], int], written: int = 0) -> int:
    """Write the parts from byte number `written` on. Returns how many bytes they have in all.

    write: takes up to IOV_MAX buffers and the number of bytes that stand in front of them, and returns how many bytes
    it has written. What it raises leaves at once: whoever gave it knows how far it has come.
    """
    index, skipped = _find(parts, 0, written)
    while index < len(parts):
        group = list(parts[index : index + IOV_MAX])
        if skipped:
            group[0] = memoryview(group[0])[skipped:]
        count = write(group, written)
        if not count:
            raise OSError(errno.EIO, "nothing was written")
        written += count
        index, skipped = _find(parts, index, skipped + count)
    return written


def _find(parts: Sequence[Buffer], index: int, count: int) -> tuple[int, int]:
    """The part, from `index` on, with the byte that has `count` bytes in front of it, and its place in that part."""
    while index < len(parts) and count >= len(parts[index]):
        count -= len(parts[index])
        index += 1
    return index, count
