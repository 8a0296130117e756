"""Lines of standard input or of a file, as they come, and whole files. A line has an end to its length."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import trio

from ..command import CommandFailed
from ..line_reader import InvalidLine

READ_BYTES = 256 * 1024
MOST_BYTES = 100 * 1024 * 1024
"""The largest line or file: what a broker takes as a whole request, unless its settings are others."""

Advance = Callable[[int], None]


async def lines_of(
    descriptor: int, *, advance: Advance | None = None, prompts: bool = False
) -> AsyncGenerator[bytes, None]:
    r"""Lines without `\n` or `\r\n`; the last one may lack its end. Raises InvalidLine for one that is too long.

    advance: called with the bytes that were read. prompts: for a person who types.
    """
    parts: list[bytes] = []
    number, done, waiting_bytes = 0, 0, 0
    while data := await _read(descriptor, prompts):
        done += len(data)
        first, *more = data.split(b"\n")
        parts.append(first)
        waiting_bytes += len(first)
        if waiting_bytes > MOST_BYTES:
            raise InvalidLine(f"Line {number + 1} is longer than {MOST_BYTES} bytes")
        if more:
            *whole, rest = [b"".join(parts), *more]
            parts, waiting_bytes = [rest], len(rest)
            for line in whole:
                number += 1
                yield line.removesuffix(b"\r")
        if advance is not None:
            advance(done)
    if waiting_bytes:
        yield b"".join(parts)


async def _read(descriptor: int, prompts: bool) -> bytes:
    """Read in a thread that nobody waits for at a signal: a terminal or a pipe may never say anything again."""

    def read() -> bytes:
        if prompts:
            os.write(sys.stdout.fileno(), b">")
        return os.read(descriptor, READ_BYTES)

    return await trio.to_thread.run_sync(read, abandon_on_cancel=True)


async def opened(path: Path) -> int:
    """Return a descriptor, which the caller closes. Raises CommandFailed."""
    try:
        return await trio.to_thread.run_sync(os.open, path, os.O_RDONLY | os.O_CLOEXEC, abandon_on_cancel=True)
    except OSError as error:
        raise CommandFailed(f"{path}: {os.strerror(error.errno or errno.EIO)}") from None
    except ValueError:
        raise CommandFailed("--file: no file has such a name") from None


async def whole_file(path: Path, descriptor: int) -> bytes:
    """Return all bytes of an open file. Raises CommandFailed."""
    parts: list[bytes] = []
    size = 0
    try:
        while data := await _read(descriptor, prompts=False):
            parts.append(data)
            size += len(data)
            if size > MOST_BYTES:
                raise CommandFailed(f"{path} is larger than {MOST_BYTES} bytes, so no record can hold it")
    except OSError as error:
        raise CommandFailed(f"{path}: {os.strerror(error.errno or errno.EIO)}") from None
    return b"".join(parts)
