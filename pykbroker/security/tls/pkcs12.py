"""PKCS#12 (RFC 7292), read as Java reads it: entries with aliases, several keys, and certificates marked as trusted.

`cryptography` reads one key, and not which certificates are trusted. Java trusts only those with an attribute that
`keytool` writes, so a file that `openssl pkcs12 -nokeys` made is an empty trust store.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .der import Element, MalformedDer, parse
from .distinguished_names import issuer, subject
from .password_based import MAC_KEY, decrypt, derive
from .store_contents import (
    WRONG_PASSWORD,
    KeyEntry,
    PasswordRefused,
    StoreContents,
    TrustedEntry,
    UnreadableStore,
    load_pkcs8,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

MAGIC = b"\x30"
"""The tag of a sequence."""

_VERSION = 3
_DATA, _ENCRYPTED_DATA = "1.2.840.113549.1.7.1", "1.2.840.113549.1.7.6"
_BAGS = "1.2.840.113549.1.12.10.1."
_KEY_BAG, _SHROUDED_KEY_BAG, _CERTIFICATE_BAG, _SAFE_BAG = (f"{_BAGS}{number}" for number in (1, 2, 3, 6))
_X509 = "1.2.840.113549.1.9.22.1"
_FRIENDLY_NAME, _LOCAL_KEY_ID = "1.2.840.113549.1.9.20", "1.2.840.113549.1.9.21"
_TRUSTED_KEY_USAGE = "2.16.840.1.113894.746875.1.1"
_DIGESTS = {
    "1.3.14.3.2.26": "sha1",
    "2.16.840.1.101.3.4.2.4": "sha224",
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
}
_LONGEST_CHAIN = 100


def read_pkcs12(data: bytes, password: str | None) -> StoreContents:
    """Return the entries. Without a password the file is not checked. Raises UnreadableStore."""
    try:
        version, safe, *mac = parse(data).children
        if version.integer != _VERSION:
            raise UnreadableStore(f"it is PKCS#12 of the unknown version {version.integer}")
        content = _data_of(safe)
        if mac and password is not None:
            _check_mac(mac[0], content, password)
        bags = [bag for info in parse(content).children for bag in _bags_of(info, password)]
        return _contents(bags)
    except (MalformedDer, ValueError, IndexError, OverflowError):
        raise UnreadableStore("it is no PKCS#12, or is damaged") from None


@dataclass(frozen=True, slots=True)
class _Bag:
    """A key or a certificate with its attributes."""

    kind: str
    content: bytes
    alias: str | None
    key_id: bytes | None
    is_trusted: bool


def _check_mac(mac: Element, content: bytes, password: str) -> None:
    """Raises UnreadableStore."""
    (algorithm, digest), salt, *iterations = mac.children[0].children, *mac.children[1:]
    oid = algorithm.children[0].oid
    if oid not in _DIGESTS:
        raise UnreadableStore(f"its MAC is of {oid}, which is not supported")
    name, size = _DIGESTS[oid], len(digest.octets)
    rounds = iterations[0].integer if iterations else 1
    key = derive(password, salt.octets, rounds, MAC_KEY, size, name)
    if not hmac.compare_digest(hmac.digest(key, content, name), digest.octets):
        raise PasswordRefused(WRONG_PASSWORD)


def _data_of(info: Element) -> bytes:
    kind, content = info.children
    if kind.oid != _DATA:
        raise UnreadableStore(f"its content is of the kind {kind.oid}, which no key store has")
    return content.children[0].octets


def _bags_of(info: Element, password: str | None) -> Iterator[_Bag]:
    if info.children[0].oid != _ENCRYPTED_DATA:
        yield from _bags_in(parse(_data_of(info)))
        return
    _, encrypted = info.children[1].children[0].children
    _, algorithm, text = encrypted.children
    if password is None:
        raise PasswordRefused("it is encrypted")
    yield from _bags_in(parse(decrypt(algorithm, text.octets, password)))


def _bags_in(safe: Element) -> Iterator[_Bag]:
    for bag in safe.children:
        kind, value, *attributes = bag.children
        content = value.children[0]
        if kind.oid == _SAFE_BAG:
            yield from _bags_in(content)
        elif kind.oid in (_KEY_BAG, _SHROUDED_KEY_BAG):
            yield _bag(kind.oid, content.encoded, attributes)
        elif kind.oid == _CERTIFICATE_BAG and content.children[0].oid == _X509:
            yield _bag(kind.oid, content.children[1].children[0].octets, attributes)


def _bag(kind: str, content: bytes, attributes: list[Element]) -> _Bag:
    found = {}
    for attribute in attributes[0].children if attributes else ():
        oid, values = attribute.children
        found[oid.oid] = values.children[0].octets if values.children else b""
    name = found.get(_FRIENDLY_NAME)
    alias = None if name is None else name.decode("utf-16-be").lower()
    return _Bag(kind, content, alias, found.get(_LOCAL_KEY_ID), _TRUSTED_KEY_USAGE in found)


def _contents(bags: list[_Bag]) -> StoreContents:
    """Join keys and their certificates, by the id that both have; a key without one has the first certificate."""
    certificates = [bag for bag in bags if bag.kind == _CERTIFICATE_BAG]
    keys, trusted = [], []
    for number, bag in enumerate(each for each in bags if each.kind != _CERTIFICATE_BAG):
        own = [each for each in certificates if each.key_id == bag.key_id] or certificates[:1]
        chain = _chain(own[0].content, certificates) if own else ()
        keys.append(KeyEntry(bag.alias or str(number), chain, _opener(bag)))
    for number, bag in enumerate(certificates):
        if bag.is_trusted:
            trusted.append(TrustedEntry(bag.alias or str(number), bag.content))
    return StoreContents(
        tuple(sorted(keys, key=lambda each: each.alias)), tuple(sorted(trusted, key=lambda each: each.alias))
    )


def _chain(own: bytes, certificates: list[_Bag]) -> tuple[bytes, ...]:
    """Follow the issuers until there is none."""
    by_subject = {subject(each.content).encoded: each.content for each in certificates}
    chain = [own]
    while len(chain) < _LONGEST_CHAIN:
        following = by_subject.get(issuer(chain[-1]).encoded)
        if following is None or following in chain:
            break
        chain.append(following)
    return tuple(chain)


def _opener(bag: _Bag) -> Callable[[str | None], PrivateKeyTypes]:
    def open_key(password: str | None) -> PrivateKeyTypes:
        return load_pkcs8(bag.content, password if bag.kind == _SHROUDED_KEY_BAG else None)

    return open_key
