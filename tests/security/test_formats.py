"""Formats below the stores: DER and BER, the texts of JKS, and PKCS#12 as programs other than keytool write it."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from random import Random

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import RC2
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.modes import CBC

from pykbroker.security.tls import rc2
from pykbroker.security.tls.der import MalformedDer, encoded, parse, read_element
from pykbroker.security.tls.jks import MAGIC, read_jks
from pykbroker.security.tls.password_based import MAC_KEY, derive
from pykbroker.security.tls.pkcs12 import read_pkcs12
from pykbroker.security.tls.store_contents import UnreadableStore
from tests.security.make_stores import STORE_PASSWORD

STORES = Path(__file__).with_name("stores")
OCTETS, CONSTRUCTED = 0x04, 0x20


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 70000])
def test_lengths_of_all_forms_are_read(size: int) -> None:
    data = encoded(OCTETS, b"a" * size)
    element, end = read_element(data + b"more", 0)
    assert (element.content, element.encoded, end) == (b"a" * size, data, len(data))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "cut short"),
        (b"\x30", "cut short"),
        (b"\x30\x05\0", "cut short"),
        (b"\x30\x85\0\0\0\0\1a", "more than four bytes"),
        (b"\x04\0", "tag 0x04 where 0x30 belongs"),
        (b"\x30\0\0", "bytes behind the end"),
        (b"\x3f\x81\0\0", "a tag of several bytes"),
        (b"\x04\x80\0\0", "a primitive element without a length"),
        (b"\x30\x80\x30\x80\0\0", "cut short"),
        (b"\x30\x80" * 100, "nested too deeply"),
    ],
)
def test_malformed_elements_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedDer, match=reason):
        parse(data)


@pytest.mark.parametrize("content", [b"", b"\x80", b"\x2a\x86"])
def test_an_identifier_ends_with_its_last_number(content: bytes) -> None:
    element, _ = read_element(encoded(0x06, content), 0)
    with pytest.raises(MalformedDer):
        _ = element.oid


def as_ber(data: bytes) -> bytes:
    """Return an element whose constructed parts have no lengths, and whose strings of bytes are cut into pieces."""
    element, _ = read_element(data, 0)
    if element.tag == OCTETS and len(element.content) > 8:
        pieces = encoded(OCTETS, element.content[:5]) + encoded(OCTETS, element.content[5:])
        return bytes([OCTETS | CONSTRUCTED, 0x80]) + pieces + b"\0\0"
    if element.tag & CONSTRUCTED:
        return bytes([element.tag, 0x80]) + b"".join(as_ber(child.encoded) for child in element.children) + b"\0\0"
    return data


@pytest.mark.parametrize("name", ["two-keys.p12", "of-java-8.p12", "openssl.p12", "trust.p12"])
def test_a_pkcs12_without_lengths_is_read(name: str) -> None:
    """Firefox and older programs of Java write such files. The digest is over what is inside, which stays."""
    data = (STORES / name).read_bytes()
    ber = as_ber(data)
    assert ber != data
    whole, again = (read_pkcs12(each, STORE_PASSWORD) for each in (data, ber))
    assert [(each.alias, each.chain) for each in again.keys] == [(each.alias, each.chain) for each in whole.keys]
    assert again.trusted == whole.trusted


@pytest.mark.parametrize("rounds", [0, -1, 5_000_001])
def test_a_password_that_takes_too_many_rounds_is_refused(rounds: int) -> None:
    with pytest.raises(UnreadableStore, match=f"goes through {rounds} rounds, at most 5000000 are made"):
        derive("password", b"salt", rounds, MAC_KEY, 20, "sha1")


def test_rc2_decrypts_as_the_library_does_where_that_can() -> None:
    random = Random(2268)
    for _ in range(50):
        key, iv, data = random.randbytes(16), random.randbytes(8), random.randbytes(40)
        assert rc2.decrypt_cbc(key, iv, data) == Cipher(RC2(key), CBC(iv)).decryptor().update(data)


def jks(*entries: bytes, version: int = 2, password: str = "secret") -> bytes:
    content = MAGIC + struct.pack(">ii", version, len(entries)) + b"".join(entries)
    return content + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + content).digest()


def trusted(alias: bytes, certificate: bytes, kind: bytes = b"X.509", tag: int = 2) -> bytes:
    head = struct.pack(">iH", tag, len(alias)) + alias + struct.pack(">q", 0)
    kind = struct.pack(">H", len(kind)) + kind if kind else b""
    return head + kind + struct.pack(">i", len(certificate)) + certificate


def test_aliases_of_jks_are_in_javas_utf_8() -> None:
    smile, zero = b"\xed\xa0\xbd\xed\xb8\x80", b"\xc0\x80"
    (entry,) = read_jks(jks(trusted(b"a" + smile + zero + "é".encode(), b"x")), "secret").trusted
    assert entry.alias == "a😀\0é"


def test_the_first_version_of_jks_does_not_tell_the_kind_of_a_certificate() -> None:
    (entry,) = read_jks(jks(trusted(b"a", b"x", b""), version=1), "secret").trusted
    assert (entry.alias, entry.certificate) == ("a", b"x")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (jks(version=3), "no JKS of version 1 or 2"),
        (jks(trusted(b"a", b"x", b"PGP")), "certificate of the unknown kind PGP"),
        (jks(trusted(b"a", b"x", tag=3)), "entry of the unknown kind 3"),
        (jks(trusted(b"\xff", b"x")), "the file is damaged"),
        (jks(trusted(b"a", b"x")[:-1]), "the file is damaged"),
        (jks(trusted(b"a", b"x"))[:-1], "its password is wrong, or the file is damaged"),
        (MAGIC, "its password is wrong, or the file is damaged"),
    ],
)
def test_a_jks_that_cannot_be_read_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableStore, match=reason):
        read_jks(data, "secret")
