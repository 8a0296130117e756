"""A certificate authority of one's own, and the certificate that it gives to a broker (RFC 5280)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_AUTHORITY_LASTS = timedelta(days=3650)
_BROKER_LASTS = timedelta(days=397)
"""The longest that all systems take."""
_CLOCKS_DIFFER = timedelta(days=1)
RENEWED_BEFORE = timedelta(days=30)
"""A broker's certificate that ends sooner is made anew at a start."""


@dataclass(frozen=True, slots=True)
class Certified:
    """A private key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def read(cls, key_pem: bytes, certificate_pem: bytes) -> Certified:
        """Raises ValueError where they are not what `stores` has written."""
        key = load_pem_private_key(key_pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the key is of another kind")
        return cls(key, x509.load_pem_x509_certificate(certificate_pem))

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def hosts(self) -> list[str]:
        """The names and addresses of its alternative names. Raises ValueError where it has none."""
        try:
            names = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            raise ValueError("the certificate has no alternative names") from None
        return [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]

    def ends_soon(self, now: datetime) -> bool:
        return self.certificate.not_valid_after_utc < now + RENEWED_BEFORE


def new_authority(now: datetime) -> Certified:
    """Return an authority whose name is its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("pykbroker development authority")
    builder = (
        _builder(name, name, key, now, _AUTHORITY_LASTS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
    )
    return Certified(key, builder.sign(key, hashes.SHA256()))


def broker_certificate(authority: Certified, hosts: Sequence[str], now: datetime) -> Certified:
    """Return a certificate for a broker with these names and addresses, which is also the client of other brokers."""
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    ends = min(now + _BROKER_LASTS, authority.certificate.not_valid_after_utc) - now
    builder = (
        _builder(_name(hosts[0]), authority.certificate.subject, key, now, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName(list(_general_names(hosts))), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
    )
    return Certified(key, builder.sign(authority.key, hashes.SHA256()))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, lasts: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + lasts)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def _general_names(hosts: Iterable[str]) -> Iterable[x509.GeneralName]:
    for host in hosts:
        try:
            yield x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            yield x509.DNSName(host)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
