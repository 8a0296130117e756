"""Elements of DER and BER (X.690): tag, length, content.

Not a validator: certificates are checked by OpenSSL. PKCS#12 files of older programs have BER's indefinite lengths.
"""

from __future__ import annotations

from dataclasses import dataclass

INTEGER = 0x02
OCTET_STRING = 0x04
OBJECT_IDENTIFIER = 0x06
SEQUENCE = 0x30
_CONSTRUCTED = 0x20
_LONG_TAG = 0x1F
_INDEFINITE = 0x80
_END_OF_CONTENTS = b"\0\0"
_DEEPEST = 32
_MOST_BYTES_OF_LENGTH = 4
_MOST_BITS_OF_ARC = 1024
"""Of one number in an object identifier: one that is a UUID has 128. Python writes no number of 5,000 digits."""


class MalformedDer(ValueError):
    """Bytes that are no DER; the text says why."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element. `encoded` is all of it, `content` what follows tag and length."""

    tag: int
    content: bytes
    encoded: bytes

    @property
    def children(self) -> list[Element]:
        """The elements inside. Raises MalformedDer."""
        found, at = [], 0
        while at < len(self.content):
            element, at = read_element(self.content, at)
            found.append(element)
        return found

    @property
    def octets(self) -> bytes:
        """The bytes of a string; BER may have cut it into pieces. Raises MalformedDer."""
        if not self.tag & _CONSTRUCTED:
            return self.content
        return b"".join(piece.octets for piece in self.children)

    @property
    def integer(self) -> int:
        return int.from_bytes(self.content, "big", signed=True)

    @property
    def oid(self) -> str:
        """An object identifier in dotted form. Raises MalformedDer."""
        if self.tag != OBJECT_IDENTIFIER or not self.content or self.content[-1] & 0x80:
            raise MalformedDer("no object identifier where one belongs")
        arcs, value = [], 0
        for byte in self.content:
            value = value << 7 | byte & 0x7F
            if value.bit_length() > _MOST_BITS_OF_ARC:
                raise MalformedDer("an object identifier with a number that is too large")
            if not byte & 0x80:
                arcs.append(value)
                value = 0
        root = min(arcs[0] // 40, 2)
        return ".".join(map(str, (root, arcs[0] - 40 * root, *arcs[1:])))


def parse(data: bytes, tag: int = SEQUENCE) -> Element:
    """Return the one element that the bytes are, of this tag. Raises MalformedDer."""
    element, end = read_element(data, 0)
    if element.tag != tag:
        raise MalformedDer(f"tag {element.tag:#04x} where {tag:#04x} belongs")
    if end != len(data):
        raise MalformedDer("bytes behind the end")
    return element


def read_element(data: bytes, at: int, depth: int = 0) -> tuple[Element, int]:
    """Return the element that begins there and the position behind it. Raises MalformedDer."""
    if at + 2 > len(data) or depth > _DEEPEST:
        raise MalformedDer("cut short" if depth <= _DEEPEST else "nested too deeply")
    tag, first = data[at], data[at + 1]
    if tag & _LONG_TAG == _LONG_TAG:
        raise MalformedDer("a tag of several bytes")
    start = at + 2
    if first == _INDEFINITE:
        return _indefinite(data, at, depth)
    length = first
    if first > _INDEFINITE:
        size = first & 0x7F
        if size > _MOST_BYTES_OF_LENGTH:
            raise MalformedDer("a length of more than four bytes")
        length, start = int.from_bytes(data[start : start + size], "big"), start + size
    end = start + length
    if end > len(data):
        raise MalformedDer("cut short")
    return Element(tag, data[start:end], data[at:end]), end


def encoded(tag: int, content: bytes) -> bytes:
    """Return one element as DER."""
    size = len(content)
    if size < _INDEFINITE:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, _INDEFINITE | len(length)]) + length + content


def _indefinite(data: bytes, at: int, depth: int) -> tuple[Element, int]:
    """An element whose end is marked, as BER allows."""
    if not data[at] & _CONSTRUCTED:
        raise MalformedDer("a primitive element without a length")
    end = start = at + 2
    while data[end : end + 2] != _END_OF_CONTENTS:
        _, end = read_element(data, end, depth + 1)
    return Element(data[at], data[start:end], data[at : end + 2]), end + 2
