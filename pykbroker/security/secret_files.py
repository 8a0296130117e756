"""Files that may hold secrets: read within bounds, only where they are files, and with a word on their mode."""

from __future__ import annotations

import logging
import os
import stat

_log = logging.getLogger(__name__)


class UnreadableFile(Exception):
    """The reason why a file is not read. Its text has neither the path nor anything that the file says."""


def read_file(path: str, most_bytes: int, *, secret: str = "") -> bytes:
    """Return a file's bytes. Raises UnreadableFile; a pipe or a device would keep the reader waiting, or never end.

    secret: the noun of what is secret in it; every user of the machine who may read that is worth a warning.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableFile("it is no file")
            data = file.read(most_bytes + 1)
    except OSError as error:
        raise UnreadableFile(error.strerror or str(error)) from None
    if len(data) > most_bytes:
        raise UnreadableFile(f"it has more than {most_bytes} bytes")
    if secret and status.st_mode & stat.S_IROTH:
        _log.warning("%s: every user of this machine may read this %s", path, secret)
    return data
