"""Parts of a batch's records, for who needs no whole ones: keys and offsets, and where the bytes of each record are.

For compaction, which looks at every record of a log: each function takes a whole batch at a time. Values and headers
are stepped over, and what is wrong inside of them is not noticed.
"""

import struct
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode

from .errors import InvalidRecords
from .varints import IndexedBytes, decode_varint, decode_varlong, encode_zigzag

WITHOUT_KEY, WITH_VALUE, TOMBSTONE = range(3)

_MIN_LENGTH = 6
"""Attributes, two deltas, the lengths of key and value, and the count of headers take at least so many bytes."""
_NULL_BYTE = 1
"""The varint -1: the length of a null."""
_NO_ATTRIBUTES = b"\x00"
_FIRST_BYTES = struct.Struct("7B")
"""A record has no fewer, and most have no more in front of their keys."""


class RecordKeys(NamedTuple):
    """Three columns in the order of the records. `kinds`: `WITHOUT_KEY`, `WITH_VALUE` or `TOMBSTONE`, a byte each."""

    keys: list[bytes | None]
    offset_deltas: list[int]
    kinds: bytes


def decode_keys(data: bytes, count: int) -> RecordKeys:
    """Keys and offsets; values and headers are stepped over. Raises `InvalidRecords`.

    Columns and one loop without a call, because each step is taken for every record of a log that is cleaned.
    """
    keys: list[bytes | None] = []
    offset_deltas: list[int] = []
    kinds = bytearray()
    position = 0
    size = len(data)
    first_bytes = _FIRST_BYTES.unpack_from
    for _ in range(count):
        if position > size - _FIRST_BYTES.size:
            raise _invalid("the batch holds fewer bytes than its records")
        b0, b1, b2, b3, b4, b5, b6 = first_bytes(data, position)
        # Most lengths and deltas take one byte or two; `start` is behind the length.
        if b0 < 128:
            start, length, timestamp, d0, d1, d2 = position + 1, b0 >> 1, b2, b3, b4, b5
        else:
            start, length, d0, d1, d2 = position + 2, (b0 & 127 | b1 << 7) >> 1, b4, b5, b6
            timestamp = b3 if b1 < 128 else 128
        if d0 < 128:
            offset_delta, n, key_at = d0 >> 1, d1, start + 4
        else:
            offset_delta, n, key_at = (d0 & 127 | d1 << 7) >> 1, d2 if d1 < 128 else 128, start + 5
        end = start + length
        value_at = key_at + (n >> 1)
        # Odd numbers are negative ones.
        if timestamp < 128 and n < 128 and not (b0 | d0 | n) & 1 and value_at < end <= size:
            keys.append(data[key_at:value_at])
            kinds.append(TOMBSTONE if data[value_at] == _NULL_BYTE else WITH_VALUE)
        else:
            key, offset_delta, kind, end = _decode_key(data, position)
            keys.append(key)
            kinds.append(kind)
        offset_deltas.append(offset_delta)
        position = end
    if position != size:
        raise _invalid("the batch holds more bytes than its records")
    return RecordKeys(keys, offset_deltas, bytes(kinds))


def _decode_key(data: bytes, position: int) -> tuple[bytes | None, int, int, int]:
    """Any record's key, offset delta, kind and end."""
    length, position = decode_varint(data, position)
    end = position + length
    if length < _MIN_LENGTH or end > len(data):
        raise _invalid("a record's length is negative or beyond the batch")
    _, position = decode_varlong(data, position + 1)
    offset_delta, position = decode_varint(data, position)
    length, key_at = decode_varint(data, position)
    if length < -1:
        raise _invalid(f"a key of length {length}")
    value_at = key_at + max(length, 0)
    if value_at >= end:
        raise _invalid("a record's length is not that of its parts")
    if length < 0:
        return None, offset_delta, WITHOUT_KEY, end
    return data[key_at:value_at], offset_delta, TOMBSTONE if data[value_at] == _NULL_BYTE else WITH_VALUE, end


def timestamp_deltas(data: IndexedBytes, count: int) -> Iterator[int]:
    """Return the timestamp deltas of `count` records that are known to be sound."""
    position = 0
    for _ in range(count):
        length, position = decode_varint(data, position)
        yield decode_varlong(data, position + 1)[0]
        position += length


class RecordSlice(NamedTuple):
    """The place of a record's bytes: `start` is that of its length, `rest` is behind the timestamp."""

    offset_delta: int
    timestamp_delta: int
    start: int
    rest: int
    end: int


def slice_records(data: bytes, count: int, wanted: Container[int]) -> list[RecordSlice]:
    """Return those of `count` records that have the wanted offset deltas. Raises `InvalidRecords`."""
    slices: list[RecordSlice] = []
    size = len(data)
    end = 0
    first_bytes = _FIRST_BYTES.unpack_from
    for _ in range(count):
        start = end
        if start > size - _FIRST_BYTES.size:
            raise _invalid("the batch holds fewer bytes than its records")
        b0, b1, _, b3, b4, b5, _ = first_bytes(data, start)
        # As above, for records of 64 bytes and more.
        offset_delta = (b4 if b4 < 128 else b4 & 127 | b5 << 7) >> 1
        end = start + 2 + ((b0 & 127 | b1 << 7) >> 1)
        if b0 > 127 > b1 and b3 < 128 and not (b0 | b4) & 1 and (b4 < 128 or b5 < 128) and end <= size:
            if offset_delta in wanted:
                slices.append(RecordSlice(offset_delta, b3 >> 1 ^ -(b3 & 1), start, start + 4, end))
            continue
        found = _slice_record(data, start)
        end = found.end
        if found.offset_delta in wanted:
            slices.append(found)
    if end != size:
        raise _invalid("the batch holds more bytes than its records")
    return slices


def _slice_record(data: bytes, start: int) -> RecordSlice:
    length, position = decode_varint(data, start)
    end = position + length
    if length < _MIN_LENGTH or end > len(data):
        raise _invalid("a record's length is negative or beyond the batch")
    timestamp_delta, rest = decode_varlong(data, position + 1)
    offset_delta, position = decode_varint(data, rest)
    if position > end:
        raise _invalid("a record's length is not that of its parts")
    return RecordSlice(offset_delta, timestamp_delta, start, rest, end)


def join_records(data: bytes, slices: Iterable[tuple[RecordSlice, int]]) -> bytes:
    """These records of a batch, each with another timestamp delta."""
    view = memoryview(data)
    parts: list[bytes | memoryview] = []
    for each, timestamp_delta in slices:
        if timestamp_delta == each.timestamp_delta:
            parts.append(view[each.start : each.end])
        else:
            encoded = encode_zigzag(timestamp_delta)
            length = encode_zigzag(1 + len(encoded) + each.end - each.rest)
            parts += (length, _NO_ATTRIBUTES, encoded, view[each.rest : each.end])
    return b"".join(parts)


def _invalid(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, message)
