"""A message whose end is missing, as far as it goes.

Only for messages that are mostly records, Produce requests and answers to a Fetch or a ShareFetch: everything before
the cut has its meaning. Tagged fields are left out.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.primitives import MAX_TAGS, read_uvarint
from pykbroker.protocol.schema import Field, Message, Struct

_FIXED: Final = {
    "bool": struct.Struct(">?"),
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
    "uuid": struct.Struct("16s"),
}
_SIZE: Final = struct.Struct(">i")
_SHORT_SIZE: Final = struct.Struct(">h")


class _End(Exception):
    """There is no more."""


class CutMessage:
    """A message as far as it goes. message: what was not read has its default."""

    def __init__(self, kind: type[Message], version: int, data: bytes, offset: int) -> None:
        """Raises MalformedMessage where what is there makes no sense."""
        self._version = version
        self._is_flexible = kind.__schema__.flexible.includes(version)
        self._data = memoryview(data)
        self._position = offset
        self._read: dict[int, set[str]] = {}
        self._whole_bytes: dict[int, int] = {}
        self.message = kind()
        try:
            self._fill(self.message)
        except _End:
            pass

    def has(self, part: Struct, field: str) -> bool:
        """Tell whether the field of the message or of a part of it was there, or the beginning of it."""
        return field in self._read.get(id(part), ())

    def whole_bytes(self, records: memoryview) -> int:
        """Return how many bytes a field of records had before the cut."""
        return self._whole_bytes.get(id(records), len(records))

    def _fill(self, part: Struct) -> None:
        read = self._read[id(part)] = set()
        for each in type(part).__schema__.fields:
            if each.versions.includes(self._version) and not each.tagged.includes(self._version):
                self._fill_field(part, each, read)
        if self._is_flexible:
            self._skip_tags()

    def _fill_field(self, part: Struct, each: Field, read: set[str]) -> None:
        if not each.is_array:
            value = self._element(each)
            setattr(part, each.name, value)
            read.add(each.name)
            if isinstance(value, memoryview) and self.whole_bytes(value) > len(value):
                raise _End
            return
        count = self._size()
        elements: list[Any] = []
        setattr(part, each.name, None if count is None else elements)
        read.add(each.name)
        for _ in range(count or 0):
            if self._position >= len(self._data):
                raise _End
            if each.element == "struct":
                element = each.struct()
                elements.append(element)
                self._fill(element)
            else:
                elements.append(self._element(each))

    def _element(self, each: Field) -> Any:
        kind = each.element
        if kind in _FIXED:
            return self._fixed(_FIXED[kind])
        if kind == "struct":
            part = each.struct()
            self._fill(part)
            return part
        size = self._size(is_short=kind == "string")
        if size is None:
            return None
        if kind == "records":
            return self._records(size)
        data = bytes(self._take(size))
        return str(data, "utf-8", "replace") if kind == "string" else data

    def _records(self, size: int) -> memoryview:
        records = self._data[self._position : self._position + size]
        self._position += len(records)
        self._whole_bytes[id(records)] = size
        return records

    def _size(self, *, is_short: bool = False) -> int | None:
        size: int = self._uvarint() - 1 if self._is_flexible else self._fixed(_SHORT_SIZE if is_short else _SIZE)
        if size < -1:
            raise MalformedMessage(f"a size of {size}")
        return None if size == -1 else size

    def _skip_tags(self) -> None:
        count = self._uvarint()
        if count > MAX_TAGS:
            raise MalformedMessage(f"{count} tagged fields")
        for _ in range(count):
            self._uvarint()
            self._take(self._uvarint())

    def _fixed(self, kind: struct.Struct) -> Any:
        (value,) = kind.unpack(self._take(kind.size))
        return value

    def _uvarint(self) -> int:
        try:
            value, self._position = read_uvarint(self._data, self._position)
        except IndexError:
            raise _End from None
        return value

    def _take(self, size: int) -> memoryview:
        data = self._data[self._position : self._position + size]
        if len(data) < size:
            raise _End
        self._position += size
        return data
