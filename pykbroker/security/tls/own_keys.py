"""The private keys of a key store with their certificates, as OpenSSL takes them.

OpenSSL holds one key of each kind (RSA, EC, Ed25519, Ed448) and offers all of them; the peer's algorithms decide. Of
several keys of one kind the first that is valid now is taken, in the order of their aliases; Java takes any of them.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from .file_in_memory import file_in_memory
from .pem import armored
from .store_contents import KeyEntry, StoreContents, UnreadableStore

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

_WITHOUT_SUITES = "DSA"
"""The kind of key for which TLS 1.3 has no suite, and OpenSSL none by default."""


@dataclass(frozen=True, slots=True)
class OwnKey:
    """A key that goes with its certificate. invalid_because: empty where the certificate is valid now."""

    alias: str
    kind: str
    chain: tuple[bytes, ...]
    pkcs8: bytes = field(repr=False)
    invalid_because: str

    def load_into(self, context: ssl.SSLContext) -> None:
        """Raises UnreadableStore where OpenSSL refuses the key or its certificate, such as a key that is too small."""
        certificates = "".join(armored("CERTIFICATE", each) for each in self.chain)
        try:
            with file_in_memory((certificates + armored("PRIVATE KEY", self.pkcs8)).encode()) as path:
                context.load_cert_chain(path)
        except ssl.SSLError as error:
            raise UnreadableStore(f"OpenSSL refuses the certificate of {self.alias}: {openssl_reason(error)}") from None


def chosen_keys(store: StoreContents, password: str | None) -> list[OwnKey]:
    """Open all keys of a store and return one of each kind. Raises UnreadableStore."""
    chosen: dict[str, OwnKey] = {}
    for key in [_own_key(entry, password) for entry in store.keys]:
        other = chosen.get(key.kind)
        if other is None or (other.invalid_because and not key.invalid_because):
            chosen[key.kind] = key
    return list(chosen.values())


def openssl_reason(error: ssl.SSLError) -> str:
    """Return OpenSSL's words alone, `ee key too small`."""
    return (error.reason or str(error)).lower().replace("_", " ")


def _own_key(entry: KeyEntry, password: str | None) -> OwnKey:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = entry.open_key(password)
    if not entry.chain:
        raise UnreadableStore(f"the key {entry.alias} has no certificate")
    try:
        certificate = x509.load_der_x509_certificate(entry.chain[0])
        certified = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UnreadableStore(f"the certificate of {entry.alias} is malformed: {error}") from None
    if certified != key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo):
        raise UnreadableStore(f"the key {entry.alias} does not belong to its certificate")
    pkcs8 = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return OwnKey(entry.alias, _kind(key), entry.chain, pkcs8, _invalid_because(certificate))


def _kind(key: PrivateKeyTypes) -> str:
    kind = type(key).__name__.removesuffix("PrivateKey").lstrip("_")
    if kind == _WITHOUT_SUITES:
        raise UnreadableStore("its key is of DSA, for which no cipher suite is offered")
    return kind


def _invalid_because(certificate: Certificate) -> str:
    now = datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        return f"has expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
    if now < certificate.not_valid_before_utc:
        return f"is not valid before {certificate.not_valid_before_utc:%Y-%m-%d}"
    return ""
