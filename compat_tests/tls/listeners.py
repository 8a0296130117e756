"""TLS listeners beside a broker's plaintext one: their properties, and where they listen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from compat_tests.brokers import BrokerProcess
from compat_tests.certificates import EXPIRED, OTHER_HOSTS, Authority, Credential, rsa_key
from compat_tests.conftest import FROM_DOCKER, make_broker
from compat_tests.key_stores import (
    KEY_PASSWORD,
    STORE_PASSWORD,
    one_line,
    pem_certificates,
    pem_key,
    write_jks,
    write_jks_trust,
    write_pem,
    write_pem_trust,
    write_pkcs12,
    write_pkcs12_trust,
)
from compat_tests.ports import take_ports

from .identities import Identities

Settings = dict[str, str]
"""Properties without their prefix `listener.name.X.`."""


class SecuredBroker:
    """A broker process and its TLS listeners."""

    def __init__(
        self,
        kind: str,
        directory: Path,
        listeners: Mapping[str, Settings],
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Not started yet. Skips the test where the broker does not read files of this machine."""
        if kind == "external" or (kind == "apache-kafka" and FROM_DOCKER):
            pytest.skip("needs a broker whose certificates are files of this machine")
        broker = make_broker(kind, directory, {})
        assert isinstance(broker, BrokerProcess)
        self.broker = broker
        self._ports = dict(zip(listeners, take_ports(len(listeners)), strict=True))
        broker.properties["listeners"] += "".join(f",{name}://127.0.0.1:{port}" for name, port in self._ports.items())
        protocols = ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", *(f"{name}:SSL" for name in listeners)]
        broker.properties["listener.security.protocol.map"] = ",".join(protocols)
        # One of Apache Kafka's network threads may have another certificate than the next one while it reloads.
        broker.properties["num.network.threads"] = "1"
        for name, settings in listeners.items():
            broker.properties |= {prefixed(name, key): value for key, value in settings.items()}
        broker.properties |= properties or {}

    def bootstrap(self, listener: str) -> str:
        return ":".join(map(str, self.address(listener)))

    def address(self, listener: str) -> tuple[str, int]:
        """listener: one of the TLS listeners, or PLAINTEXT."""
        return ("127.0.0.1", self._ports[listener]) if listener in self._ports else self.broker.address


def prefixed(listener: str, key: str) -> str:
    return f"listener.name.{listener.lower()}.{key}"


def pem(path: Path) -> Settings:
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)}


def pem_trust(path: Path) -> Settings:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(path)}


def pkcs12(path: Path) -> Settings:
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(path),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
    }


def pkcs12_trust(path: Path) -> Settings:
    return {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(path),
        "ssl.truststore.password": STORE_PASSWORD,
    }


def inline(credential: Credential) -> Settings:
    """Key and certificates in the properties themselves."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": one_line(pem_key(credential)),
        "ssl.keystore.certificate.chain": one_line(pem_certificates(credential.chain)),
    }


def inline_trust(authority: Authority) -> Settings:
    certificates = one_line(pem_certificates([authority.certificate]))
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": certificates}


ONLY_1_2 = {"ssl.enabled.protocols": "TLSv1.2", "ssl.protocol": "TLSv1.2"}
ONLY_1_3 = {"ssl.enabled.protocols": "TLSv1.3"}
REQUIRED = {"ssl.client.auth": "required"}
REQUESTED = {"ssl.client.auth": "requested"}
MAPPED = {"ssl.principal.mapping.rules": r"RULE:^CN=([a-z]+),O=Example$/$1/U"}
"""Knows names of small letters; for all others there is no rule."""


def standard_listeners(identities: Identities, directory: Path) -> dict[str, Settings]:
    """One listener for each kind of store, of client authentication, and of bad server certificate. JKS is apart:
    `jks_listener`.
    """
    authority = identities.authority
    chain = pem(write_pem(directory / "chain.pem", identities.intermediate.server()))
    elsewhere = authority.server("CN=broker.example.org,O=Example", hosts=OTHER_HOSTS)
    trusted = pem_trust(write_pem_trust(directory / "trust.pem", authority))
    p12 = pkcs12(write_pkcs12(directory / "server.p12", authority.server()))
    p12_trusted = pkcs12_trust(write_pkcs12_trust(directory / "trust.p12", authority))
    return {
        "TLS": chain,
        "INLINE": {**inline(authority.server(key=rsa_key())), **inline_trust(authority), **REQUESTED},
        "TLS12": {**chain, **ONLY_1_2},
        "TLS13": {**chain, **ONLY_1_3},
        "ELSEWHERE": pem(write_pem(directory / "elsewhere.pem", elsewhere)),
        "EXPIRED": pem(write_pem(directory / "expired.pem", authority.server(lifetime=EXPIRED))),
        "REQUESTED": {**p12, **p12_trusted, **REQUESTED},
        "REQUIRED": {**p12, **p12_trusted, **REQUIRED},
        "REQUIRED12": {**chain, **trusted, **REQUIRED, **ONLY_1_2},
        "MAPPED": {**chain, **trusted, **REQUIRED, **MAPPED},
    }


def jks_listener(identities: Identities, directory: Path) -> dict[str, Settings]:
    """Raises JavaMissing: keytool writes these stores."""
    credential = identities.authority.server(key=rsa_key())
    return {
        "JKS": {
            "ssl.keystore.location": str(write_jks(directory / "server.jks", credential, key_password=KEY_PASSWORD)),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.key.password": KEY_PASSWORD,
            "ssl.truststore.location": str(write_jks_trust(directory / "trust.jks", identities.authority)),
            "ssl.truststore.password": STORE_PASSWORD,
            **REQUIRED,
        }
    }
