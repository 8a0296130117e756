"""Distinguished names in DER, also those that no library would write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pykbroker.security.tls.der import OBJECT_IDENTIFIER, SEQUENCE, encoded

Attribute = tuple[str, int, bytes]
"""The type in dotted form, the tag of the value and its content."""

_SET = 0x31


def encoded_name(parts: Iterable[Sequence[Attribute]]) -> bytes:
    """Return a name of these parts, in their order."""
    return encoded(SEQUENCE, b"".join(encoded(_SET, b"".join(map(_attribute, part))) for part in parts))


def _attribute(attribute: Attribute) -> bytes:
    oid, tag, content = attribute
    return encoded(SEQUENCE, encoded(OBJECT_IDENTIFIER, _encoded_oid(oid)) + encoded(tag, content))


def _encoded_oid(oid: str) -> bytes:
    first, second, *others = map(int, oid.split("."))
    return b"".join(_base_128(arc) for arc in (40 * first + second, *others))


def _base_128(arc: int) -> bytes:
    digits = [arc & 0x7F]
    while arc := arc >> 7:
        digits.append(arc & 0x7F | 0x80)
    return bytes(reversed(digits))
