"""JKS, Java's older format of key stores: entries, a digest over all of it with the password, and protected keys.

The format is that of `sun.security.provider.JavaKeyStore`; keys are protected by `KeyProtector`, which is Java's own.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING

from .der import MalformedDer, parse
from .store_contents import (
    WRONG_KEY_PASSWORD,
    WRONG_PASSWORD,
    KeyEntry,
    KeyPasswordRefused,
    PasswordRefused,
    StoreContents,
    TrustedEntry,
    UnreadableStore,
    load_pkcs8,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

MAGIC = bytes.fromhex("feedfeed")
_VERSIONS = (1, 2)
KEY_ENTRY, TRUSTED_ENTRY = 1, 2
_DIGEST_SIZE = 20
WHITENER = b"Mighty Aphrodite"
_KEY_PROTECTOR = "1.3.6.1.4.1.42.2.17.1.1"
KEY_PROTECTOR_DER = bytes.fromhex("060a2b060104012a02110101")


def read_jks(data: bytes, password: str | None) -> StoreContents:
    """Return the entries. Without a password nothing tells whether the file was changed. Raises UnreadableStore."""
    content, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    if password is not None and not hmac.compare_digest(sha1(wide(password) + WHITENER + content), digest):
        raise PasswordRefused(WRONG_PASSWORD)
    try:
        return _Reader(content).contents()
    except (IndexError, UnicodeDecodeError):
        raise UnreadableStore("the file is damaged") from None


class _Reader:
    """A position in Java's `DataInput`. Raises IndexError at the end of the bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def contents(self) -> StoreContents:
        if self._take(4) != MAGIC or (version := self._integer(4)) not in _VERSIONS:
            raise UnreadableStore(f"it is no JKS of version {' or '.join(map(str, _VERSIONS))}")
        keys, trusted = [], []
        for _ in range(self._integer(4)):
            tag, alias = self._integer(4), self._text()
            self._take(8)  # when it was made
            if tag == KEY_ENTRY:
                protected = self._take(self._integer(4))
                chain = tuple(self._certificate(version) for _ in range(self._integer(4)))
                keys.append(KeyEntry(alias, chain, _opener(protected)))
            elif tag == TRUSTED_ENTRY:
                trusted.append(TrustedEntry(alias, self._certificate(version)))
            else:
                raise UnreadableStore(f"it has an entry of the unknown kind {tag}")
        return StoreContents(
            tuple(sorted(keys, key=lambda each: each.alias)), tuple(sorted(trusted, key=lambda each: each.alias))
        )

    def _certificate(self, version: int) -> bytes:
        kind = self._text() if version > 1 else "X.509"
        if kind != "X.509":
            raise UnreadableStore(f"it has a certificate of the unknown kind {kind}")
        return self._take(self._integer(4))

    def _text(self) -> str:
        """Return a text in Java's UTF-8, in which a character of two units has six bytes."""
        text = self._take(self._integer(2)).replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return text.encode("utf-16", "surrogatepass").decode("utf-16")

    def _integer(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def _take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise IndexError
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken


def _opener(protected: bytes) -> Callable[[str | None], PrivateKeyTypes]:
    def open_key(password: str | None) -> PrivateKeyTypes:
        return load_pkcs8(_unprotected(protected, password or ""), None)

    return open_key


def _unprotected(protected: bytes, password: str) -> bytes:
    """Return the PKCS#8 structure of a protected key. Raises UnreadableStore."""
    try:
        algorithm, encrypted = parse(protected).children
        if algorithm.children[0].oid != _KEY_PROTECTOR:
            raise UnreadableStore(f"its key is protected by {algorithm.children[0].oid}, which no JKS has")
    except (MalformedDer, ValueError, IndexError):
        raise UnreadableStore("its key is damaged") from None
    data, secret = encrypted.content, wide(password)
    salt, body, digest = data[:_DIGEST_SIZE], data[_DIGEST_SIZE:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    stream = key_stream(secret, salt, len(body))
    plain = bytes(one ^ other for one, other in zip(body, stream, strict=True))
    if not hmac.compare_digest(sha1(secret + plain), digest):
        raise KeyPasswordRefused(WRONG_KEY_PASSWORD)
    return plain


def key_stream(secret: bytes, salt: bytes, size: int) -> bytes:
    """Return what a key of this size is combined with, bit by bit, to hide it or to show it."""
    stream, block = bytearray(), salt
    while len(stream) < size:
        block = sha1(secret + block)
        stream += block
    return bytes(stream[:size])


def wide(password: str) -> bytes:
    return password.encode("utf-16-be")


def sha1(data: bytes) -> bytes:
    import hashlib

    return hashlib.sha1(data, usedforsecurity=False).digest()
