"""A file that OpenSSL can open by its path, and that no disk ever holds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def file_in_memory(content: bytes) -> Iterator[str]:
    """Yield the path of a file that only this process can name; it is gone afterwards.

    Where the system has no such files, it is one that only this user can read, until it is read.
    """
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("pykbroker", os.MFD_CLOEXEC), "wb", buffering=0) as file:
            file.write(content)
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as named:
            named.write(content)
            named.flush()
            yield named.name
