"""The fields of a message in Protobuf's wire format, without a look at what is in them.

Protobuf's own parser reads a message as a whole: a mebibyte of empty parts makes half a million objects, and holds the
interpreter meanwhile. So a push is cut in pieces first, of which no more are read than have room.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5
_SIZES: Final = {_I64: 8, _I32: 4}
_LONGEST_VARINT: Final = 10
MOST_FIELDS: Final = 200_000
"""Three times as many as the largest pushes of Java's clients have, which take a tenth of a second."""


class MalformedPush(Exception):
    """A push that is no message of OpenTelemetry's; the text says in a few words why."""


@dataclass(slots=True)
class FieldRoom:
    """The room for fields that are looked at, of one push. left_out: whether there were more."""

    fields: int = MOST_FIELDS
    left_out: bool = False


def length_delimited(data: memoryview, number: int, room: FieldRoom) -> Iterator[memoryview]:
    """Yield what the fields of this number hold while there is room. Raises MalformedPush for what is no field."""
    position, end = 0, len(data)
    while position < end:
        room.fields -= 1
        if room.fields < 0:
            room.left_out = True
            return
        tag, position = _varint(data, position)
        if not tag >> 3:
            raise MalformedPush("a field without a number")
        size = _SIZES.get(tag & 7)
        if tag & 7 == _VARINT:
            _, position = _varint(data, position)
            continue
        if tag & 7 == _LEN:
            size, position = _varint(data, position)
        if size is None:
            raise MalformedPush("a field of no known type")
        start, position = position, position + size
        if position > end:
            raise MalformedPush("a field ends beyond the message")
        if tag == number << 3 | _LEN:
            yield data[start:position]


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for index in range(_LONGEST_VARINT):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, position
    raise MalformedPush("a number that does not end")
