"""Who a key store says that its owner is: names and alternative names, which a reload at run time has to keep."""

from __future__ import annotations

from dataclasses import dataclass

from .der import MalformedDer
from .distinguished_names import UnusableName, distinguished_name
from .store_contents import StoreContents, UnreadableStore


@dataclass(frozen=True, slots=True)
class CertifiedName:
    """The certificate of one alias. alternative_names: as `DNSName:localhost`."""

    alias: str
    name: str
    alternative_names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Identity:
    """All entries of a key store, by their aliases, certificates without a key included (as Kafka compares them)."""

    entries: tuple[CertifiedName, ...]

    @classmethod
    def of(cls, store: StoreContents) -> Identity:
        """Raises UnreadableStore."""
        leaves = [(each.alias, each.chain[0]) for each in store.keys if each.chain]
        trusted = [(each.alias, each.certificate) for each in store.trusted]
        return cls(tuple(_certified(alias, certificate) for alias, certificate in sorted((*leaves, *trusted))))


def _certified(alias: str, certificate: bytes) -> CertifiedName:
    from cryptography import x509

    try:
        name = distinguished_name(certificate)
        parsed = x509.load_der_x509_certificate(certificate)
        try:
            extension = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        except x509.ExtensionNotFound:
            return CertifiedName(alias, name, frozenset())
        return CertifiedName(alias, name, frozenset(map(_alternative_name, extension.value)))
    except (UnusableName, MalformedDer, ValueError) as error:
        raise UnreadableStore(f"the certificate of {alias} is malformed: {error}") from None


def _alternative_name(name: object) -> str:
    value = getattr(name, "value", name)
    return f"{type(name).__name__}:{value}"
