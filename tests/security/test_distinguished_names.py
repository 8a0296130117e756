"""Names in certificates as text: those of Java's `X500Principal.getName()`, whatever a certificate has in them."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from compat_tests.certificates import Authority, self_signed
from pykbroker.security.tls.der import OBJECT_IDENTIFIER, SEQUENCE, MalformedDer, encoded, parse
from pykbroker.security.tls.distinguished_names import UnusableName, distinguished_name, name_text
from tests.security.names import encoded_name

CN, UTF8, PRINTABLE, BMP, T61, IA5, UNIVERSAL, NUMERIC = "2.5.4.3", 0x0C, 0x13, 0x1E, 0x14, 0x16, 0x1C, 0x12

TEXTS = {
    "Alice": "CN=Alice",
    "a b": "CN=a b",
    " a  b ": "CN=\\ a  b\\ ",
    "   ": "CN=\\ \\ \\ ",
    "\ra\r": "CN=\\\ra\\\r",
    "a,b": "CN=a\\,b",
    "a+b=c": "CN=a\\+b\\=c",
    '"<>;\\': 'CN=\\"\\<\\>\\;\\\\',
    "#a#": "CN=\\#a\\#",
    "a\0b": "CN=a\\00b",
    "a\nb\t": "CN=a\nb\t",
    "Ä日😀": "CN=Ä日😀",
    "": "CN=",
}
"""What Java 17 makes of a common name."""


@pytest.mark.parametrize(("value", "text"), TEXTS.items())
def test_characters_are_escaped_as_java_does(value: str, text: str) -> None:
    assert name_text(parse(encoded_name([[(CN, UTF8, value.encode())]]))) == text


@pytest.mark.parametrize(
    ("tag", "content", "text"),
    [
        (PRINTABLE, b"ab", "CN=ab"),
        (T61, b"\xe9", "CN=\ufffd"),
        (IA5, "é".encode(), "CN=é"),
        (BMP, "ab".encode("utf-16-be"), "CN=\\00a\\00b"),
        (UTF8, b"a\xffb", "CN=a\ufffdb"),
        (UNIVERSAL, b"\0\0\0a", "CN=#1c0400000061"),
        (NUMERIC, b"12", "CN=#12023132"),
    ],
)
def test_every_kind_of_string_is_taken_for_utf8_or_shown_in_hexadecimal(tag: int, content: bytes, text: str) -> None:
    assert name_text(parse(encoded_name([[(CN, tag, content)]]))) == text


def test_keywords_are_those_of_rfc_2253_and_others_are_numbers() -> None:
    known = "CN=x,C=x,L=x,ST=x,O=x,OU=x,STREET=x,DC=x,UID=x"
    numbers = ["3", "6", "7", "8", "10", "11", "9"]
    attributes = [f"2.5.4.{number}" for number in numbers]
    attributes += ["0.9.2342.19200300.100.1.25", "0.9.2342.19200300.100.1.1"]
    name = encoded_name([[(oid, UTF8, b"x")] for oid in reversed(attributes)])
    assert name_text(parse(name)) == known
    other = encoded_name([[("1.2.840.113549.1.9.1", IA5, b"a@b")], [("2.999.1", UTF8, b"x")]])
    assert name_text(parse(other)) == "2.999.1=#0c0178,1.2.840.113549.1.9.1=#1603614062"


def test_the_last_part_comes_first_and_values_of_one_part_keep_their_order() -> None:
    name = encoded_name([[("2.5.4.6", PRINTABLE, b"DE")], [(CN, UTF8, b"a"), ("2.5.4.10", UTF8, b"b")]])
    assert name_text(parse(name)) == "CN=a+O=b,C=DE"
    assert name_text(parse(encoded_name([]))) == ""


def test_the_subject_of_a_certificate_is_its_name() -> None:
    client = Authority.root().client("CN=alice,OU=engineering,O=Example,C=DE")
    assert distinguished_name(client.certificate.public_bytes(Encoding.DER)) == "CN=alice,OU=engineering,O=Example,C=DE"


def test_a_name_that_is_too_long_is_nobodys() -> None:
    with pytest.raises(UnusableName, match="at most 4096 are read"):
        name_text(parse(encoded_name([[(CN, UTF8, b"a" * 4096)]])))


def test_bytes_that_are_no_certificate_have_no_name() -> None:
    certificate = self_signed().certificate.public_bytes(Encoding.DER)
    for bad in (b"", b"\x30\x00", b"\x30\x03\x02\x01\x01", certificate[:-1], certificate + b"\0"):
        with pytest.raises(UnusableName, match="malformed"):
            distinguished_name(bad)


def test_a_number_in_a_type_that_python_could_not_write_is_no_failure_of_ours() -> None:
    """An object identifier of two kilobytes, whose one number has more digits than Python converts to text."""
    huge = encoded(OBJECT_IDENTIFIER, b"\x2a" + b"\xff" * 2_300 + b"\x01")
    attribute = encoded(SEQUENCE, huge + encoded(UTF8, b"x"))
    with pytest.raises(MalformedDer, match="too large"):
        name_text(parse(encoded(SEQUENCE, encoded(0x31, attribute))))
    uuid = f"2.25.{(1 << 128) - 1}"
    assert name_text(parse(encoded_name([[(uuid, UTF8, b"x")]]))) == f"{uuid}=#0c0178"
