"""Keys and values as text and back: `--key-format`, `--value-format`.

A codec shows bytes in two ways, as the text of a line and as a JSON document, and makes bytes of both again. Avro and
Protobuf are codecs, too (`avro`, `protobuf`); `of_options` knows them all.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from ..line_reader import InvalidLine
from ..record_format import deserializer
from . import json_text

MOST_SHOWN_CHARACTERS = 80
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf|nan", re.IGNORECASE)


class Codec(Protocol):
    """A format of keys or values. Every method raises InvalidLine for what does not have the format."""

    def shown(self, data: bytes) -> bytes:
        """Return the text that stands for the bytes in a line."""
        ...

    def document(self, data: bytes) -> str:
        """Return a JSON document, in one line."""
        ...

    def from_line(self, text: bytes) -> bytes: ...

    def from_document(self, document: object) -> bytes: ...


class TextCodec:
    """Bytes as they are; as a document, a string, which takes UTF-8."""

    def shown(self, data: bytes) -> bytes:
        return data

    def document(self, data: bytes) -> str:
        return json.dumps(decoded_text(data), ensure_ascii=False)

    def from_line(self, text: bytes) -> bytes:
        return text

    def from_document(self, document: object) -> bytes:
        if not isinstance(document, str):
            raise InvalidLine(f"{short(document)} is not a string, and no format or schema is given")
        return encoded_text(document)


@dataclass(frozen=True, slots=True)
class JsonCodec:
    """JSON documents. is_pretty: a line becomes several, for a reader on a terminal."""

    is_pretty: bool = False

    def shown(self, data: bytes) -> bytes:
        text = _checked(decoded_text(data))
        return (json_text.pretty(text) if self.is_pretty else json_text.compact(text)).encode()

    def document(self, data: bytes) -> str:
        return json_text.compact(_checked(decoded_text(data)))

    def from_line(self, text: bytes) -> bytes:
        _checked(decoded_text(text))
        return text

    def from_document(self, document: object) -> bytes:
        return encoded_text(json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


class HexCodec:
    """Two hexadecimal digits a byte."""

    def shown(self, data: bytes) -> bytes:
        return data.hex().encode()

    def document(self, data: bytes) -> str:
        return f'"{data.hex()}"'

    def from_line(self, text: bytes) -> bytes:
        try:
            return bytes.fromhex(text.decode("ascii"))
        except ValueError:
            raise InvalidLine(f"{short(text)} is not hexadecimal") from None

    def from_document(self, document: object) -> bytes:
        return self.from_line(_string_of(document))


class Base64Codec:
    """Base64 with padding, in the standard alphabet (RFC 4648)."""

    def shown(self, data: bytes) -> bytes:
        return base64.b64encode(data)

    def document(self, data: bytes) -> str:
        return f'"{base64.b64encode(data).decode()}"'

    def from_line(self, text: bytes) -> bytes:
        return from_base64(text)

    def from_document(self, document: object) -> bytes:
        return self.from_line(_string_of(document))


@dataclass(frozen=True, slots=True)
class NumberCodec:
    """Numbers as Kafka's serializers write them. kafka_name: that of the deserializer. layout: `struct`'s."""

    kafka_name: str
    layout: str

    def shown(self, data: bytes) -> bytes:
        return deserializer(self.kafka_name)(data)

    def document(self, data: bytes) -> str:
        text = self.shown(data).decode()
        return f'"{text}"' if text in ("nan", "inf", "-inf") else text

    def from_line(self, text: bytes) -> bytes:
        is_whole = self.layout[-1] in "hiq"
        decoded = text.decode("ascii", "replace").strip()
        if (_WHOLE if is_whole else _DECIMAL).fullmatch(decoded) is None:
            raise InvalidLine(f"{short(text)} is not a number")
        try:
            number = int(decoded) if is_whole else float(decoded)
            if math.isinf(number) and "inf" not in decoded.lower():
                raise OverflowError
            return struct.pack(self.layout, number)
        except (struct.error, OverflowError):
            raise InvalidLine(
                f"{short(text)} is out of range of {self.kafka_name.removesuffix('Deserializer')}"
            ) from None

    def from_document(self, document: object) -> bytes:
        if isinstance(document, bool) or not isinstance(document, int | float | str):
            raise InvalidLine(f"{short(document)} is not a number")
        return self.from_line(str(document).encode("utf-8", "replace"))


class UuidCodec:
    """UUIDs as their text, which is what Kafka's serializer writes."""

    def shown(self, data: bytes) -> bytes:
        return deserializer("UUIDDeserializer")(data)

    def document(self, data: bytes) -> str:
        return f'"{self.shown(data).decode()}"'

    def from_line(self, text: bytes) -> bytes:
        try:
            return str(uuid.UUID(text.decode("ascii"))).encode()
        except ValueError:
            raise InvalidLine(f"{short(text)} is not a UUID") from None

    def from_document(self, document: object) -> bytes:
        return self.from_line(_string_of(document))


TEXT: Final = TextCodec()
CODECS: Final[Mapping[str, Codec]] = {
    "text": TEXT,
    "json": JsonCodec(),
    "hex": HexCodec(),
    "base64": Base64Codec(),
    "short": NumberCodec("ShortDeserializer", ">h"),
    "int": NumberCodec("IntegerDeserializer", ">i"),
    "long": NumberCodec("LongDeserializer", ">q"),
    "float": NumberCodec("FloatDeserializer", ">f"),
    "double": NumberCodec("DoubleDeserializer", ">d"),
    "uuid": UuidCodec(),
}
"""By the name that `--key-format` and `--value-format` take."""


def from_base64(text: bytes) -> bytes:
    """Raises InvalidLine."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidLine(f"{short(text)} is not base64") from None


def decoded_text(data: bytes) -> str:
    """Raises InvalidLine."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidLine(f"not UTF-8: {error.reason} at byte {error.start}") from None


def encoded_text(text: str) -> bytes:
    """Raises InvalidLine for half a surrogate pair, which JSON can write and UTF-8 cannot."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidLine(f"half a surrogate pair (U+{ord(text[error.start]):04X}) is not text") from None


def short(thing: object) -> str:
    """Return a repr for a message: a line may have a hundred megabytes."""
    if isinstance(thing, bytes):
        thing = thing[: MOST_SHOWN_CHARACTERS + 1].decode("utf-8", "replace")
    if isinstance(thing, str):
        return repr(thing if len(thing) <= MOST_SHOWN_CHARACTERS else f"{thing[:MOST_SHOWN_CHARACTERS]}…")
    kinds = {
        dict: "an object",
        list: "a list",
        type(None): "null",
        bool: "a boolean",
        int: "a number",
        float: "a number",
    }
    return kinds.get(type(thing), "a value")


def _checked(text: str) -> str:
    try:
        json_text.check(text)
    except ValueError as error:
        raise InvalidLine(f"not JSON: {error}") from None
    return text


def _string_of(document: object) -> bytes:
    if not isinstance(document, str):
        raise InvalidLine(f"{short(document)} is not a string")
    return document.encode("utf-8", "replace")
