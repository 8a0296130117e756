"""Small files of others: a token, a document of keys. They are read within bounds, and only where they are files."""

from __future__ import annotations

import os
import stat

from .https import FetchFailed


def read_small_file(path: str, most_bytes: int) -> bytes:
    """Raises FetchFailed; a pipe or a device would keep the reader waiting, or never end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise FetchFailed(f"{path} is not a file", is_final=True)
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(most_bytes + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise FetchFailed(f"{path} cannot be read: {error.strerror}", is_final=True) from None
    if len(data) > most_bytes:
        raise FetchFailed(f"{path} is larger than {most_bytes} bytes", is_final=True)
    return data
