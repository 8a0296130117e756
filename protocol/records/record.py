"""One record inside a batch of format 2, decoded and encoded (`DefaultRecord`).

Not checked here: everything that only a broker asks of a producer, like offset deltas without gaps; see `checking`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode

from .errors import InvalidRecords
from .varints import decode_varint, decode_varlong, encode_zigzag

NO_TIMESTAMP = -1

Header = tuple[str, bytes | None]


class Record(NamedTuple):
    """A record as consumers see it. `headers` may repeat a key; timestamps are milliseconds, -1 for none.

    Header keys that are not UTF-8 keep their bytes as surrogate escapes.
    """

    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()
    timestamp: int = NO_TIMESTAMP
    offset: int = -1


def _invalid(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, message)


def decode_records(data: bytes, count: int, base_offset: int, base_timestamp: int) -> Iterator[Record]:
    """The `count` records of a decompressed batch. Raises `InvalidRecords` where the bytes are not exactly those."""
    position = 0
    for _ in range(count):
        length, position = decode_varint(data, position)
        end = position + length
        if length < 0 or end > len(data):
            raise _invalid("a record's length is negative or beyond the batch")
        # The byte of attributes that no version uses comes first.
        position += 1
        timestamp_delta = _SMALL[data[position]] if position < end else None
        if timestamp_delta is None:
            timestamp_delta, position = decode_varlong(data, position)
        else:
            position += 1
        offset_delta = _SMALL[data[position]] if position < end else None
        if offset_delta is None:
            offset_delta, position = decode_varint(data, position)
        else:
            position += 1
        key, position = _decode_bytes(data, position, end)
        value, position = _decode_bytes(data, position, end)
        headers: tuple[Header, ...] = ()
        if position < end and data[position] == 0:
            position += 1
        else:
            headers, position = _decode_headers(data, position, end)
        if position != end:
            raise _invalid("a record's length is not that of its parts")
        yield Record(key, value, headers, base_timestamp + timestamp_delta, base_offset + offset_delta)
    if position != len(data):
        raise _invalid("the batch holds more bytes than its records")


_SMALL: list[int | None] = [n >> 1 ^ -(n & 1) if n < 128 else None for n in range(256)]
"""The values of one-byte varints; None where another byte follows."""


def _decode_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length = _SMALL[data[position]] if position < end else None
    if length is None:
        length, position = decode_varint(data, position)
    else:
        position += 1
    if length < 0:
        if length != -1:
            raise _invalid(f"a key, value or header of length {length}")
        return None, position
    stop = position + length
    if stop > end:
        raise _invalid("a key, value or header is longer than its record")
    return data[position:stop], stop


def _decode_headers(data: bytes, position: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, position = decode_varint(data, position)
    # Each header takes at least the two bytes of its lengths.
    if count < 0 or count * 2 > end - position:
        raise _invalid(f"a record with {count} headers")
    headers = []
    for _ in range(count):
        key, position = _decode_bytes(data, position, end)
        if key is None:
            raise _invalid("a header without a key")
        value, position = _decode_bytes(data, position, end)
        headers.append((key.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position


_NULL = encode_zigzag(-1)
_NO_HEADERS = encode_zigzag(0)
_TABLED = 256
_ZIGZAG = [encode_zigzag(n) for n in range(_TABLED)]
"""What nearly all sizes and deltas are."""


def encode_record(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    """A record with its length in front."""
    key, value, headers, _, _ = record
    times = _ZIGZAG[timestamp_delta] if 0 <= timestamp_delta < _TABLED else encode_zigzag(timestamp_delta)
    offset = _ZIGZAG[offset_delta] if 0 <= offset_delta < _TABLED else encode_zigzag(offset_delta)
    key_size = _NULL if key is None else _ZIGZAG[n] if (n := len(key)) < _TABLED else encode_zigzag(n)
    value_size = _NULL if value is None else _ZIGZAG[n] if (n := len(value)) < _TABLED else encode_zigzag(n)
    if not headers:
        body = b"".join((b"\x00", times, offset, key_size, key or b"", value_size, value or b"", _NO_HEADERS))
    else:
        parts = [b"\x00", times, offset, key_size, key or b"", value_size, value or b""]
        parts.append(encode_zigzag(len(headers)))
        for name, header_value in headers:
            encoded = name.encode("utf-8", "surrogateescape")
            parts += (encode_zigzag(len(encoded)), encoded)
            parts += (_NULL,) if header_value is None else (encode_zigzag(len(header_value)), header_value)
        body = b"".join(parts)
    size = len(body)
    return (_ZIGZAG[size] if size < _TABLED else encode_zigzag(size)) + body
