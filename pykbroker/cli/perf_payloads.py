"""Payloads that `pykbroker perf` writes: random letters, the lines of a file, or numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from .command import CommandFailed

LARGEST_RECORD_BYTES: Final = 104_857_600
"""`socket.request.max.bytes`: a broker takes no larger request unless it is told to."""
_POOL_BYTES: Final = 1 << 20
_LARGEST_FILE_BYTES: Final = 256 << 20
_LETTERS: Final = bytes(ord("A") + number % 26 for number in range(256))
"""The letter that stands for each byte."""


def random_letters(size_bytes: int, rng: Random) -> Iterator[bytes]:
    """Payloads without an end: pieces of a megabyte of random letters, which compress as little as Kafka's do."""
    pool = rng.randbytes(_POOL_BYTES).translate(_LETTERS)
    pool *= 1 + size_bytes // _POOL_BYTES
    pool += pool[:size_bytes]
    position = 0
    while True:
        yield pool[position : position + size_bytes]
        position = (position + size_bytes + 7) % _POOL_BYTES


def monotonic() -> Iterator[bytes]:
    """Yield the numbers from 0 on, as text."""
    number = 0
    while True:
        yield b"%d" % number
        number += 1


def lines_of(path: Path, delimiter: str, rng: Random) -> Iterator[bytes]:
    """Payloads from a file, drawn at random. Raises CommandFailed before the first one is asked for."""
    if not delimiter:
        raise CommandFailed("--payload-delimiter must not be empty")
    payloads = _read(path).split(delimiter.encode())
    if payloads[-1] in (b"", b"\n"):
        payloads.pop()
    if not payloads:
        raise CommandFailed(f"The payload file {path} is empty")
    return _drawn(payloads, rng)


def _drawn(payloads: list[bytes], rng: Random) -> Iterator[bytes]:
    while True:
        yield rng.choice(payloads)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror}") from None
    if len(data) > _LARGEST_FILE_BYTES:
        raise CommandFailed(f"The payload file {path} is larger than {_LARGEST_FILE_BYTES >> 20} MB")
    return data
