"""Ports of the nodes of one run: a range that no other run on this machine has meanwhile.

The JVM of the tests looks for free ones in it. They are below those that the kernel gives to outgoing connections.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO

from compat_tests.apache_kafka.jars import cache_directory

FIRST_PORT, PORTS, RANGES = 21_000, 1_250, 8


@contextmanager
def ports_of_a_run() -> Iterator[int]:
    """The first port of a range that is free; where none is, waits for the first to become so."""
    ports = [FIRST_PORT + PORTS * number for number in range(RANGES)]
    with ExitStack() as opened:
        files = [opened.enter_context(open(cache_directory() / f".kafka-tests-{port}.lock", "w")) for port in ports]
        free = next((port for port, file in zip(ports, files, strict=True) if _takes(file)), None)
        if free is None:
            fcntl.flock(files[0], fcntl.LOCK_EX)
        yield free or FIRST_PORT


def _takes(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
