"""System calls that meet a full disk half way."""

import errno
from collections.abc import Callable, Sequence


def full_after(write: Callable[..., int], room: int) -> Callable[..., int]:
    """The system call on a disk that takes so many bytes more, as any call may take less than it is given."""

    def write_what_fits(descriptor: int, parts: Sequence[bytes], *position: int) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = write(descriptor, [b"".join(parts)[:room]] if len(parts) <= 1024 else parts, *position)
        room -= count
        return count

    return write_what_fits
