"""Keys of a terminal, one by one and without an echo, while a block runs."""

from __future__ import annotations

import os
import re
import sys
import termios
import tty
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

import trio

_READ_BYTES = 256
_KEY = re.compile(rb"\x1b[\[O][0-9;]*[A-Za-z~]|[^\x1b]|\x1b")
_BEGUN = re.compile(rb"\x1b([\[O][0-9;]*)?\Z")
"""A sequence whose end comes with the next read."""
_LONGEST_SEQUENCE_BYTES = 16
_CHARACTERS_OF_CONTROL = 6
_SEQUENCES = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
}


@contextmanager
def single_keys() -> Iterator[int | None]:
    """Return the file descriptor of the keyboard; None where standard input is no terminal.

    Ctrl-C stays a signal. Ctrl-Z is switched off: the screen of the shell is not the one that would be left behind.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        yield None
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        settings = termios.tcgetattr(descriptor)
        settings[_CHARACTERS_OF_CONTROL][termios.VSUSP] = os.fpathconf(descriptor, "PC_VDISABLE").to_bytes(1, "little")
        termios.tcsetattr(descriptor, termios.TCSANOW, settings)
        yield descriptor
    finally:
        # A terminal that is gone has no settings any more.
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def keys(descriptor: int) -> AsyncIterator[str]:
    """Characters, and names of the keys that move; nothing more once the terminal is gone."""
    rest = b""
    while True:
        await trio.lowlevel.wait_readable(descriptor)
        try:
            data = os.read(descriptor, _READ_BYTES)
        except OSError:
            return
        if not data:
            return
        data = rest + data
        begun = _BEGUN.search(data)
        rest = begun.group() if begun is not None and len(begun.group()) < _LONGEST_SEQUENCE_BYTES else b""
        for key in _KEY.findall(data[: len(data) - len(rest)]):
            yield _SEQUENCES.get(key) or key.decode("ascii", "ignore")
