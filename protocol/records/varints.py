"""Zigzag varints as records use them (`ByteUtils.writeVarint` / `writeVarlong`).

Not the unsigned varints of flexible messages; those are in `protocol.primitives`. The hot loops in this package
repeat the one-byte case in line, because a call costs more than the work.
"""

from mmap import mmap
from typing import TypeAlias

from pykbroker.protocol.errors import ErrorCode

from .errors import InvalidRecords

IndexedBytes: TypeAlias = bytes | bytearray | mmap
"""Bytes are the fastest to look at."""

MAX_VARINT_BYTES = 5
MAX_VARLONG_BYTES = 10

_ONE_BYTE = [bytes((n,)) for n in range(128)]


def encode_zigzag(value: int) -> bytes:
    """A signed integer of up to 64 bits; small magnitudes take one byte."""
    n = value << 1 if value >= 0 else (-value << 1) - 1
    if n < 128:
        return _ONE_BYTE[n]
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def decode_varint(data: IndexedBytes, position: int) -> tuple[int, int]:
    """A zigzag int32 and the position behind it."""
    return _decode(data, position, MAX_VARINT_BYTES, 32)


def decode_varlong(data: IndexedBytes, position: int) -> tuple[int, int]:
    """A zigzag int64 and the position behind it."""
    return _decode(data, position, MAX_VARLONG_BYTES, 64)


def _decode(data: IndexedBytes, position: int, max_bytes: int, bits: int) -> tuple[int, int]:
    n = 0
    for index in range(max_bytes):
        if position >= len(data):
            raise InvalidRecords(ErrorCode.INVALID_RECORD, "a varint ends beyond the records")
        byte = data[position]
        position += 1
        n |= (byte & 127) << (7 * index)
        if byte < 128:
            if n >> bits:
                raise InvalidRecords(ErrorCode.INVALID_RECORD, f"a varint has more than {bits} bits")
            return n >> 1 ^ -(n & 1), position
    raise InvalidRecords(ErrorCode.INVALID_RECORD, f"a varint is longer than {max_bytes} bytes")
