"""JKS stores are written, for Java clients that know no other format. `jks` has the format, and reads them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from .jks import KEY_ENTRY, KEY_PROTECTOR_DER, MAGIC, TRUSTED_ENTRY, WHITENER, key_stream, sha1, wide

_VERSION: Final = 2
_SALT_SIZE: Final = 20
_SEQUENCE: Final = b"\x30"
_OCTET_STRING: Final = b"\x04"
_NULL: Final = b"\x05\x00"


def write_jks(
    password: str,
    made_ms: int,
    *,
    keys: Sequence[tuple[str, bytes, Sequence[bytes]]] = (),
    trusted: Sequence[tuple[str, bytes]] = (),
) -> bytes:
    """Return a store whose keys have its own password.

    keys: an alias, the key in PKCS#8 and its certificates in DER, the key's own first. trusted: an alias and a
    certificate. made_ms: milliseconds of the wall clock. Aliases and the password are ASCII.
    """
    content = MAGIC + _integer(_VERSION) + _integer(len(keys) + len(trusted))
    for alias, key, chain in keys:
        protected = _protected(key, password)
        content += _integer(KEY_ENTRY) + _text(alias) + _integer(made_ms, 8) + _sized(protected) + _integer(len(chain))
        content += b"".join(_certificate(each) for each in chain)
    for alias, certificate in trusted:
        content += _integer(TRUSTED_ENTRY) + _text(alias) + _integer(made_ms, 8) + _certificate(certificate)
    return content + sha1(wide(password) + WHITENER + content)


def _protected(key: bytes, password: str) -> bytes:
    """The key as an EncryptedPrivateKeyInfo of Java's `KeyProtector`."""
    salt, secret = secrets.token_bytes(_SALT_SIZE), wide(password)
    stream = key_stream(secret, salt, len(key))
    encrypted = bytes(one ^ other for one, other in zip(key, stream, strict=True))
    body = salt + encrypted + sha1(secret + key)
    return _der(_SEQUENCE, _der(_SEQUENCE, KEY_PROTECTOR_DER + _NULL) + _der(_OCTET_STRING, body))


def _der(tag: bytes, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return tag + bytes([size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return tag + bytes([0x80 | len(length)]) + length + content


def _certificate(data: bytes) -> bytes:
    return _text("X.509") + _sized(data)


def _sized(data: bytes) -> bytes:
    return _integer(len(data)) + data


def _text(text: str) -> bytes:
    data = text.encode("ascii")
    return _integer(len(data), 2) + data


def _integer(number: int, size: int = 4) -> bytes:
    return number.to_bytes(size, "big")
