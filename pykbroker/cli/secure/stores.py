"""Key stores and trust stores as PEM, PKCS12 and JKS, with the names that they have in the directory."""

from __future__ import annotations

import time

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from pykbroker.security.tls.jks_writing import write_jks

from .authority import Certified

AUTHORITY_PEM = "ca.pem"
AUTHORITY_KEY = "ca-key.pem"
BROKER_PEM = "server.pem"
_BROKER_ALIAS, _AUTHORITY_ALIAS = "server", "ca"


def authority_files(authority: Certified, password: str) -> dict[str, bytes]:
    """The authority, and trust stores that have it, by the names of their files."""
    trusted = pkcs12.PKCS12Certificate(authority.certificate, _AUTHORITY_ALIAS.encode())
    der = authority.certificate.public_bytes(Encoding.DER)
    return {
        AUTHORITY_KEY: authority.key_pem,
        AUTHORITY_PEM: authority.certificate_pem,
        "truststore.p12": pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(password.encode())),
        "truststore.jks": write_jks(password, _now_ms(), trusted=[(_AUTHORITY_ALIAS, der)]),
    }


def broker_files(broker: Certified, authority: Certified, password: str) -> dict[str, bytes]:
    """Key stores that have the broker's key and its certificates, by the names of their files."""
    key = broker.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    chain = [each.certificate.public_bytes(Encoding.DER) for each in (broker, authority)]
    encryption = BestAvailableEncryption(password.encode())
    return {
        BROKER_PEM: broker.key_pem + broker.certificate_pem + authority.certificate_pem,
        "server.p12": pkcs12.serialize_key_and_certificates(
            _BROKER_ALIAS.encode(), broker.key, broker.certificate, [authority.certificate], encryption
        ),
        "server.jks": write_jks(password, _now_ms(), keys=[(_BROKER_ALIAS, key, chain)]),
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
