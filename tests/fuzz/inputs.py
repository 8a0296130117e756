"""The forms of inputs that targets and seeds share."""

from __future__ import annotations

import struct
from typing import Final

NOW_MS: Final = 1_700_000_000_000
PIECE: Final = struct.Struct(">I")
"""The size of a first piece, where an input has two."""
SPLIT: Final = b"\n--\n"
"""What stands between the messages of an exchange, and between records."""


def two(data: bytes) -> tuple[bytes, bytes]:
    """Return the two pieces of an input: what `pair` has put together, or whatever is there."""
    size = PIECE.unpack_from(data)[0] if len(data) >= PIECE.size else 0
    return data[PIECE.size : PIECE.size + size], data[PIECE.size + size :]


def pair(first: bytes, second: bytes) -> bytes:
    """Return an input of two pieces."""
    return PIECE.pack(len(first)) + first + second
