"""Certificate authorities and the certificates that they issue, made anew in each run: good and bad ones.

Keys are of the curve P-256, which costs a tenth of a millisecond; an RSA key costs a hundred, so a run has one.
`key_stores` writes what is made here to files.
"""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
"""All names of a broker under test."""
OTHER_HOSTS = ("broker.example.org",)
"""None of its names."""

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Of a certificate, relative to now."""

    begins: timedelta
    ends: timedelta


VALID = Lifetime(-DAY, 365 * DAY)
EXPIRED = Lifetime(-10 * DAY, -DAY)
NOT_YET_VALID = Lifetime(DAY, 10 * DAY)


@dataclass(frozen=True, slots=True)
class Credential:
    """A private key and its certificate. issuers: the intermediate authorities up to, and without, the root."""

    key: PrivateKey
    certificate: x509.Certificate
    issuers: tuple[x509.Certificate, ...] = ()

    @property
    def chain(self) -> tuple[x509.Certificate, ...]:
        """The certificates that a peer is sent, its own first."""
        return self.certificate, *self.issuers


@dataclass(frozen=True, slots=True)
class Authority:
    """A root or an intermediate authority. issuers: as those of a Credential, itself among them unless it is a root."""

    key: PrivateKey
    certificate: x509.Certificate
    issuers: tuple[x509.Certificate, ...] = ()

    @classmethod
    def root(cls, name: str = "CN=Test authority,O=Example") -> Authority:
        key = ec_key()
        builder = _builder(name, key, name, VALID, _of_authority())
        return cls(key, builder.sign(key, hashes.SHA256()))

    def intermediate(self, name: str = "CN=Intermediate authority,O=Example", lifetime: Lifetime = VALID) -> Authority:
        key = ec_key()
        certificate = self._sign(_builder(name, key, self.name, lifetime, _of_authority()))
        return Authority(key, certificate, (certificate, *self.issuers))

    @property
    def name(self) -> str:
        return self.certificate.subject.rfc4514_string()

    def server(
        self,
        name: str = "CN=localhost,O=Example",
        *,
        hosts: Sequence[str] = LOCAL_HOSTS,
        lifetime: Lifetime = VALID,
        key: PrivateKey | None = None,
    ) -> Credential:
        """For a broker, which is also the client of other brokers. hosts: none for a certificate without a SAN."""
        names = [x509.SubjectAlternativeName([_general_name(host) for host in hosts])] if hosts else []
        return self._credential(name, [*_of_leaf(), *names], lifetime, key)

    def client(
        self, name: str = "CN=alice,O=Example", *, lifetime: Lifetime = VALID, key: PrivateKey | None = None
    ) -> Credential:
        """name: the distinguished name as in RFC 4514, `CN=alice,OU=engineering,O=Example,C=DE`."""
        return self._credential(name, _of_leaf(), lifetime, key)

    def _credential(
        self, name: str, extensions: list[x509.ExtensionType], lifetime: Lifetime, key: PrivateKey | None
    ) -> Credential:
        key = key or ec_key()
        return Credential(key, self._sign(_builder(name, key, self.name, lifetime, extensions)), self.issuers)

    def _sign(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        of_issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return builder.add_extension(of_issuer, critical=False).sign(self.key, hashes.SHA256())


def self_signed(
    name: str = "CN=mallory,O=Example", *, hosts: Sequence[str] = LOCAL_HOSTS, lifetime: Lifetime = VALID
) -> Credential:
    """A certificate that no authority has signed."""
    key = ec_key()
    names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    builder = _builder(name, key, name, lifetime, [*_of_leaf(), names])
    return Credential(key, builder.sign(key, hashes.SHA256()))


def ec_key() -> ec.EllipticCurvePrivateKey:
    """Return a new key of the curve P-256."""
    return ec.generate_private_key(ec.SECP256R1())


@functools.cache
def rsa_key() -> rsa.RSAPrivateKey:
    """Return the run's only RSA key, of 2048 bits."""
    return rsa.generate_private_key(65537, 2048)


def _builder(
    name: str, key: PrivateKey, issuer: str, lifetime: Lifetime, extensions: Sequence[x509.ExtensionType]
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name.from_rfc4514_string(name))
        .issuer_name(x509.Name.from_rfc4514_string(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + lifetime.begins)
        .not_valid_after(now + lifetime.ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    for extension in extensions:
        is_critical = isinstance(extension, x509.BasicConstraints | x509.KeyUsage)
        builder = builder.add_extension(extension, is_critical)
    return builder


def _of_authority() -> list[x509.ExtensionType]:
    return [x509.BasicConstraints(ca=True, path_length=None), _key_usage(is_authority=True)]


def _of_leaf() -> list[x509.ExtensionType]:
    purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    return [x509.BasicConstraints(ca=False, path_length=None), _key_usage(is_authority=False), purposes]


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=not is_authority,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
