"""The pieces that generated codecs call: varints, text, arrays of numbers, tagged sections.

Reading never goes by a length that a peer announced before it is compared with the bytes that are there. A slice may
run past the end (Python cuts it); the position then stands behind the end, which the caller of a codec checks once.

Text that is not UTF-8 is replaced by U+FFFD as Java does it, so that whatever came off the wire can be logged, hashed
and encoded by code that knows nothing of this. A long run of such bytes grows threefold in the answer, past what a
Kafka string can hold: it is refused here rather than when the answer is written.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Mapping, Sequence
from typing import Final

from .errors import MalformedMessage, TooManyElements
from .schema import NO_TAGS

MAX_STRING_BYTES: Final = 0x7FFF
MAX_TAGS: Final = 128
"""Tagged fields of one struct. Kafka takes any number, and the memory for them (CVE-2026-111115)."""

LARGEST_TAG: Final = 0x7FFFFFFE
"""Java reads tags as signed numbers, and keeps the greatest for itself."""

TEXT_ERRORS: Final = "kafka-replace"
_REPLACEMENT_BYTES: Final = 3

SHORT_VARINTS: Final = tuple(bytes([value]) for value in range(128))


def _replace_invalid_text(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    if len(error.object) * _REPLACEMENT_BYTES > MAX_STRING_BYTES:
        raise MalformedMessage(f"a string of {len(error.object)} bytes is not UTF-8")
    return error.object[error.start :].decode("utf-8", "replace"), len(error.object)


codecs.register_error(TEXT_ERRORS, _replace_invalid_text)


def encode_uvarint(value: int) -> bytes:
    """Encode an unsigned 32-bit number in at most five bytes."""
    if not 0 <= value <= 0xFFFFFFFF:
        raise ValueError(f"{value} does not fit an unsigned varint")
    if value < 0x80:
        return SHORT_VARINTS[value]
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_uvarint(data: memoryview | bytes, position: int) -> tuple[int, int]:
    """The number and the position behind it; raises IndexError at the end of the data."""
    first = data[position]
    return (first, position + 1) if first < 0x80 else finish_uvarint(data, position + 1, first)


def finish_uvarint(data: memoryview | bytes, position: int, first: int) -> tuple[int, int]:
    """The rest of a varint whose first byte said that there is more."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise MalformedMessage("a varint does not fit 32 bits")


def read_numbers(code: str, size: int, count: int, data: memoryview, position: int) -> list[int]:
    """An array of fixed-size numbers in one go."""
    if count == 0:
        return []
    end = position + size * count
    return [number for (number,) in struct.iter_unpack(code, data[position:end])]


def read_uuids(data: memoryview, position: int, count: int) -> list[bytes]:
    return [bytes(data[start : start + 16]) for start in range(position, position + 16 * count, 16)]


def read_tags(data: memoryview, position: int, count: int, budget: int) -> tuple[dict[int, bytes], int, int]:
    """The entries of a tagged section of which nothing is known; also what is left of the budget of objects."""
    budget = check_tag_count(count, budget)
    tags: dict[int, bytes] = {}
    last = -1
    for _ in range(count):
        last, position, end = read_tag(data, position, last)
        tags[last] = bytes(data[position:end])
        position = end
    return tags, position, budget


def check_tag_count(count: int, budget: int) -> int:
    if count > MAX_TAGS:
        raise MalformedMessage(f"{count} tagged fields in one struct")
    if count > budget:
        raise TooManyElements(f"{count} tagged fields, more elements than a message may hold")
    return budget - count


def read_tag(data: memoryview, position: int, last: int) -> tuple[int, int, int]:
    """The tag, and where its value begins and ends. Tags must ascend."""
    tag, position = read_uvarint(data, position)
    size, position = read_uvarint(data, position)
    if tag <= last or tag > LARGEST_TAG:
        raise MalformedMessage(f"tagged field {tag} comes after {last}")
    if size > len(data) - position:
        raise MalformedMessage(f"tagged field {tag} has {size} bytes, {len(data) - position} are left")
    return tag, position, position + size


def pack_numbers(code: str, numbers: Sequence[int]) -> bytes:
    return struct.pack(f">{len(numbers)}{code}", *numbers)


def pack_uuids(uuids: Sequence[bytes]) -> bytes:
    return b"".join(map(checked_uuid, uuids))


def checked_uuid(uuid: bytes) -> bytes:
    """`struct` would pad or cut a UUID of the wrong size without a word."""
    if len(uuid) != 16:
        raise ValueError(f"a UUID has 16 bytes, this has {len(uuid)}")
    return uuid


def too_long(name: str, size: int) -> ValueError:
    return ValueError(f"{name} has {size} bytes, a string holds at most {MAX_STRING_BYTES}")


def encode_tags(known: dict[int, bytes] | None, unknown: Mapping[int, bytes]) -> bytes:
    """A whole tagged section, in ascending order of tags."""
    tags = dict(known or NO_TAGS)
    for tag, value in unknown.items():
        if tag in tags:
            raise ValueError(f"tag {tag} is both a field of the schema and among the unknown tagged fields")
        if not 0 <= tag <= LARGEST_TAG:
            raise ValueError(f"tag {tag} is out of range")
        tags[tag] = value
    parts = [encode_uvarint(len(tags))]
    for tag in sorted(tags):
        parts += (encode_uvarint(tag), encode_uvarint(len(tags[tag])), tags[tag])
    return b"".join(parts)


def bad_null(name: str) -> MalformedMessage:
    return MalformedMessage(f"{name} is null")


def bad_length(name: str, length: int) -> MalformedMessage:
    return MalformedMessage(f"{name} has length {length}")


def bad_count(name: str, count: int, left: int, budget: int) -> MalformedMessage:
    if count > budget:
        return TooManyElements(f"{name} announces {count} elements, more than a message may hold")
    return MalformedMessage(f"{name} announces {count} elements in {left} bytes")


def overrun(position: int, end: int) -> MalformedMessage:
    return MalformedMessage(f"the last value ends {position - end} bytes behind the data")


def bad_tag_size(name: str) -> MalformedMessage:
    return MalformedMessage(f"tagged field {name} does not fill the size that is announced for it")


def misplaced_tag(name: str, tag: int) -> MalformedMessage:
    return MalformedMessage(f"{name} has tagged field {tag}, which belongs to other versions")
