"""PEM (RFC 7468): private keys and certificates as text, as Kafka reads them.

A text may stand in one line of a properties file, with blanks for its line ends. Keys are PKCS#8, encrypted or not.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator

from .der import MalformedDer
from .distinguished_names import issuer, subject
from .store_contents import KeyEntry, StoreContents, TrustedEntry, UnreadableStore, load_pkcs8

_BEGIN, _END, _DASHES = "-----BEGIN ", "-----END ", "-----"
_CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE")
_KEY = "PRIVATE KEY"
_PKCS8 = (_KEY, "ENCRYPTED PRIVATE KEY")
_KEY_ALIAS = "kafka"


def read_key_store(text: str) -> StoreContents:
    """Return the one key of a text and its chain. Raises UnreadableStore."""
    return key_store(read_key(text), read_chain(text))


def key_store(key: bytes, chain: tuple[bytes, ...]) -> StoreContents:
    """Return the contents of a key store that was given as two texts."""
    return StoreContents(keys=(KeyEntry(_KEY_ALIAS, chain, lambda password: load_pkcs8(key, password)),))


def read_key(text: str) -> bytes:
    """Return the one private key of a text as PKCS#8, which may be encrypted. Raises UnreadableStore."""
    keys = [(label, der) for label, der in _blocks(text) if label.endswith(_KEY)]
    if len(keys) != 1:
        raise UnreadableStore(
            f"it has {len(keys)} private keys, where one belongs" if keys else "no private key is in it"
        )
    label, der = keys[0]
    if label not in _PKCS8:
        raise UnreadableStore(f"its key is of the kind {label}, where PKCS#8 belongs (openssl pkcs8 -topk8 makes it)")
    return der


def read_chain(text: str) -> tuple[bytes, ...]:
    """Return the certificates of a text, which Java wants in the order of a chain. Raises UnreadableStore."""
    chain = certificates(text)
    try:
        follows = all(issuer(chain[at]).encoded == subject(chain[at + 1]).encoded for at in range(len(chain) - 1))
    except MalformedDer as error:
        raise UnreadableStore(f"a certificate in it is malformed: {error}") from None
    if not follows or len(set(chain)) < len(chain):
        raise UnreadableStore("its certificates are no chain: the key's own comes first, then the one of each issuer")
    return chain


def read_trust_store(text: str) -> StoreContents:
    """Return all certificates of a text as trusted ones. Raises UnreadableStore."""
    found = enumerate(certificates(text))
    return StoreContents(trusted=tuple(TrustedEntry(f"{_KEY_ALIAS}{number}", each) for number, each in found))


def certificates(text: str) -> tuple[bytes, ...]:
    """Return the certificates of a text in their order, at least one. Raises UnreadableStore."""
    found = tuple(der for label, der in _blocks(text) if label in _CERTIFICATES)
    if not found:
        raise UnreadableStore("no certificate is in it")
    return found


def armored(label: str, der: bytes) -> str:
    """Return one block of PEM."""
    lines = binascii.b2a_base64(der, newline=False).decode()
    body = "\n".join(lines[at : at + 64] for at in range(0, len(lines), 64))
    return f"{_BEGIN}{label}{_DASHES}\n{body}\n{_END}{label}{_DASHES}\n"


def _blocks(text: str) -> Iterator[tuple[str, bytes]]:
    """Yield label and content of each block. Text between the blocks is a comment."""
    at = text.find(_BEGIN)
    while at >= 0:
        label_end = text.find(_DASHES, at + len(_BEGIN))
        label = text[at + len(_BEGIN) : max(label_end, 0)]
        body_end = text.find(f"{_END}{label}{_DASHES}", label_end)
        if label_end < 0 or body_end < 0:
            raise UnreadableStore("a block of PEM in it has no end")
        yield label, _decoded(text[label_end + len(_DASHES) : body_end])
        at = text.find(_BEGIN, body_end)


def _decoded(body: str) -> bytes:
    without_headers = [line for line in body.splitlines() if ":" not in line]
    try:
        return binascii.a2b_base64("".join("".join(without_headers).split()), strict_mode=True)
    except ValueError:
        raise UnreadableStore("a block of PEM in it is not Base64") from None
