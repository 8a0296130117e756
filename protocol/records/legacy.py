"""Messages of the formats 0 and 1, which Kafka wrote before 0.11 (`AbstractLegacyRecordBatch`, KIP-31, KIP-32).

A log holds them one after the other: offset and size as in front of a batch, then checksum, format, attributes, in
format 1 a timestamp, key and value. A compressed message is a wrapper: its value is a set of messages, its own offset
that of the last one in it. Inside, format 0 has absolute offsets, format 1 such that count from the first message's.
A message, wrapper or not, takes the place of a batch: its header is told in a batch header's fields. Nothing writes
such messages any more.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from pykbroker.protocol.errors import ErrorCode

from .compression import Buffer, Compression, decompress
from .errors import InvalidRecords
from .record import NO_TIMESTAMP, Record

MAGIC_VALUE_V0 = 0
MAGIC_VALUE_V1 = 1

OFFSET_AND_SIZE_BYTES = 12
_CRC_FROM = 16
_MAGIC_AT = 16
_FIELDS = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_KEY_AT = (_FIELDS.size, _FIELDS.size + _TIMESTAMP.size)
"""Where the key's length stands, by format."""
_OVERHEAD_BYTES = (_KEY_AT[0] + 8, _KEY_AT[1] + 8)
"""A message with neither key nor value, by format."""

MIN_MESSAGE_BYTES = _OVERHEAD_BYTES[0]
MAX_HEADER_BYTES = _OVERHEAD_BYTES[1]

_COMPRESSION_MASK = 0x07
_TIMESTAMP_TYPE_MASK = 0x08
_MEANINGFUL_ATTRIBUTES = _COMPRESSION_MASK | _TIMESTAMP_TYPE_MASK

HeaderFields = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]


def decode_header_fields(data: Buffer, at: int = 0) -> HeaderFields | None:
    """The header of the message at `at` as a batch header's fields, or None where there is no such message.

    It needs the first `MAX_HEADER_BYTES` of the message, or all of a shorter one. As base offset stands the last
    offset: where a wrapper begins is known only to whoever decompresses it.
    """
    if len(data) - at < MIN_MESSAGE_BYTES:
        return None
    offset, length, crc, magic, attributes = _FIELDS.unpack_from(data, at)
    if magic not in (MAGIC_VALUE_V0, MAGIC_VALUE_V1) or length + OFFSET_AND_SIZE_BYTES < _OVERHEAD_BYTES[magic]:
        return None
    timestamp = NO_TIMESTAMP
    if magic == MAGIC_VALUE_V1:
        if len(data) - at < _OVERHEAD_BYTES[1]:
            return None
        (timestamp,) = _TIMESTAMP.unpack_from(data, at + _FIELDS.size)
    (key_length,) = _LENGTH.unpack_from(data, at + _KEY_AT[magic])
    if not -1 <= key_length <= length + OFFSET_AND_SIZE_BYTES - _OVERHEAD_BYTES[magic]:
        return None
    attributes &= _MEANINGFUL_ATTRIBUTES
    return offset, length, -1, magic, crc, attributes, 0, timestamp, timestamp, -1, -1, -1, 1


def value_length_position(data: Buffer, at: int = 0) -> int:
    """Return the position of the value's length, counted from `at`, where `decode_header_fields` saw a message."""
    magic = data[at + _MAGIC_AT]
    (key_length,) = _LENGTH.unpack_from(data, at + _KEY_AT[magic])
    return _KEY_AT[magic] + 4 + max(int(key_length), 0)


def is_value_length_right(value_length: int, value_length_at: int, message_bytes: int) -> bool:
    """Tell whether the value ends where the message ends: by chance only messages of these formats do."""
    return value_length >= -1 and value_length_at + 4 + max(value_length, 0) == message_bytes


def decode_message_header(message: Buffer) -> HeaderFields | None:
    """Decode the header of a whole message. Return None also where its parts do not add up to its length."""
    fields = decode_header_fields(message)
    if fields is None:
        return None
    value_at = value_length_position(message)
    value_length = int.from_bytes(message[value_at : value_at + 4], "big", signed=True)
    return fields if is_value_length_right(value_length, value_at, len(message)) else None


def is_checksum_right(message: Buffer) -> bool:
    view = memoryview(message)
    return zlib.crc32(view[_CRC_FROM:]) == int.from_bytes(view[12:16], "big")


class _Message(NamedTuple):
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def iter_legacy_records(message: Buffer, limit_bytes: int | None = None) -> Iterator[Record]:
    """The record, or those in the wrapper, with their absolute offsets. Raises `InvalidRecords`."""
    outer, _ = _decode_message(memoryview(message), 0)
    codec = Compression.from_attributes(outer.attributes)
    if codec is Compression.NONE:
        yield Record(outer.key, outer.value, (), outer.timestamp, outer.offset)
        return
    if outer.value is None:
        raise _invalid("a compressed message without a value")
    inner = list(_decode_messages(_decompress(codec, outer, limit_bytes)))
    if not inner:
        raise _invalid("a compressed message with nothing in it")
    # Certain versions of librdkafka left the wrapper's offset at 0.
    is_relative = outer.magic == MAGIC_VALUE_V1
    base_offset = outer.offset - inner[-1].offset if is_relative and outer.offset else 0
    if base_offset < 0:
        raise _invalid(f"offset {inner[-1].offset} in a compressed message with the offset {outer.offset}")
    is_append_time = outer.attributes & _TIMESTAMP_TYPE_MASK
    for each in inner:
        if each.magic != outer.magic or each.attributes & _COMPRESSION_MASK:
            raise _invalid(f"format {each.magic}, compression {each.attributes & _COMPRESSION_MASK} in a wrapper")
        timestamp = outer.timestamp if is_append_time else each.timestamp
        yield Record(each.key, each.value, (), timestamp, base_offset + each.offset)


def _decode_messages(data: Buffer) -> Iterator[_Message]:
    view = memoryview(data)
    position = 0
    while position < len(view):
        message, position = _decode_message(view, position)
        yield message


def _decode_message(view: memoryview, at: int) -> tuple[_Message, int]:
    fields = decode_header_fields(view, at)
    if fields is None:
        raise _invalid("no message of format 0 or 1")
    offset, length, _, magic, _, attributes, _, timestamp, *_ = fields
    end = at + OFFSET_AND_SIZE_BYTES + length
    if end > len(view):
        raise _invalid("a message that ends beyond the data")
    value_at = at + value_length_position(view, at)
    (key_length,) = _LENGTH.unpack_from(view, at + _KEY_AT[magic])
    (value_length,) = _LENGTH.unpack_from(view, value_at)
    if not is_value_length_right(value_length, value_at - at, end - at):
        raise _invalid("a message's length is not that of its parts")
    key = None if key_length < 0 else bytes(view[value_at - key_length : value_at])
    value = None if value_length < 0 else bytes(view[value_at + 4 : end])
    return _Message(offset, magic, attributes, timestamp, key, value), end


def _invalid(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.CORRUPT_MESSAGE, message)


# LZ4 in format 0: the frame's header has a checksum that counts its magic number in


def _decompress(codec: Compression, outer: _Message, limit_bytes: int | None) -> Buffer:
    data = outer.value or b""
    if codec is Compression.LZ4 and outer.magic == MAGIC_VALUE_V0:
        if len(data) < _LZ4_HEADER_BYTES:
            raise _invalid("the lz4 data is shorter than its header")
        # Java does not look at the checksum here; some clients wrote the right one.
        checksum = _xxh32(data[_LZ4_DESCRIPTOR]) >> 8 & 0xFF
        data = data[:_LZ4_CHECKSUM_AT] + bytes((checksum,)) + data[_LZ4_CHECKSUM_AT + 1 :]
    return decompress(codec, data, limit_bytes)


_LZ4_HEADER_BYTES = 7
_LZ4_CHECKSUM_AT = 6
_LZ4_DESCRIPTOR = slice(4, 6)
"""Flags and block size; Kafka's clients never wrote the content size that could stand behind."""


def _xxh32(data: bytes) -> int:
    """XXH32 with seed 0, of less than 16 bytes."""
    value = (0x165667B1 + len(data)) & 0xFFFFFFFF
    position = 0
    while position + 4 <= len(data):
        value = (value + int.from_bytes(data[position : position + 4], "little") * 0xC2B2AE3D) & 0xFFFFFFFF
        value = _rotated(value, 17) * 0x27D4EB2F & 0xFFFFFFFF
        position += 4
    for byte in data[position:]:
        value = (value + byte * 0x165667B1) & 0xFFFFFFFF
        value = _rotated(value, 11) * 0x9E3779B1 & 0xFFFFFFFF
    value = (value ^ value >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE3D & 0xFFFFFFFF
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF
