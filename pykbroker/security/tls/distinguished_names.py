"""Names in certificates as Java writes them: the text of `X500Principal.getName()`, which Kafka's ACLs name.

The format is that of RFC 2253 with three habits of Java: `=` and `#` are escaped wherever they stand, a blank at either
end is escaped, too, and the bytes of every kind of string are taken for UTF-8.
"""

from __future__ import annotations

import re

from .der import SEQUENCE, Element, MalformedDer, parse

_LONGEST = 4096
"""Bytes of a name in a certificate: a client chooses them, and rules are matched against their text."""

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_STRINGS = {0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E}
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""
_ESCAPED = frozenset(',=+<>#;"\\')
_BLANKS = " \r"
_HALF_PAIRS = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\ufffd".encode()
_VERSION = 0xA0


class UnusableName(Exception):
    """A certificate whose subject gives no name for a principal; the text says why."""


def distinguished_name(certificate_der: bytes) -> str:
    """Return the subject of a certificate as text. Raises UnusableName."""
    try:
        return name_text(subject(certificate_der))
    except MalformedDer as error:
        raise UnusableName(f"the subject of the certificate is malformed: {error}") from None


def subject(certificate_der: bytes) -> Element:
    """Return the encoded subject of a certificate. Raises MalformedDer."""
    return _names(certificate_der)[1]


def issuer(certificate_der: bytes) -> Element:
    """Return the encoded name of who signed a certificate. Raises MalformedDer."""
    return _names(certificate_der)[0]


def name_text(name: Element) -> str:
    """Return the text of a name. Raises UnusableName if it is too long, MalformedDer."""
    return ",".join(name_parts(name))


def name_parts(name: Element) -> list[str]:
    """Return the texts of the parts of a name, the last one first. Raises as name_text does."""
    if len(name.encoded) > _LONGEST:
        raise UnusableName(f"the subject of the certificate has {len(name.encoded)} bytes, at most {_LONGEST} are read")
    return ["+".join(map(_attribute, group.children)) for group in reversed(name.children)]


def _names(certificate_der: bytes) -> tuple[Element, Element]:
    fields = parse(certificate_der).children[:1]
    if not fields:
        raise MalformedDer("an empty certificate")
    fields = fields[0].children
    if fields and fields[0].tag == _VERSION:
        fields = fields[1:]
    if len(fields) < 5 or fields[2].tag != SEQUENCE or fields[4].tag != SEQUENCE:
        raise MalformedDer("a certificate without names")
    return fields[2], fields[4]


def _attribute(attribute: Element) -> str:
    parts = attribute.children
    if len(parts) != 2:
        raise MalformedDer("an attribute that is no pair")
    oid, value = parts[0].oid, parts[1]
    keyword = _KEYWORDS.get(oid)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or oid}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(_decoded(value.content))}"


def _decoded(content: bytes) -> str:
    """Return a text in which one sign stands for each malformed sequence, half a pair of UTF-16 among them."""
    return _HALF_PAIRS.sub(_REPLACEMENT, content).decode(errors="replace")


def _escaped(text: str) -> str:
    middle = text.strip(_BLANKS)
    lead = len(text) - len(text.lstrip(_BLANKS)) if middle else len(text)
    trail = len(text) - lead - len(middle)
    inside = "".join(f"\\{each}" if each in _ESCAPED else each for each in middle).replace("\0", "\\00")
    return _each_escaped(text[:lead]) + inside + _each_escaped(text[len(text) - trail :] if trail else "")


def _each_escaped(blanks: str) -> str:
    return "".join(f"\\{each}" for each in blanks)
