"""Identity of a broker by its key store: names and alternative names, which stay when a store is replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .der import MalformedDer
from .distinguished_names import UnusableName, name_parts, subject
from .store_contents import StoreContents, UnreadableStore

if TYPE_CHECKING:
    from cryptography.x509 import GeneralName

_KINDS = {"OtherName": 0, "RFC822Name": 1, "DNSName": 2, "DirectoryName": 4, "UniformResourceIdentifier": 6}
_KINDS |= {"IPAddress": 7, "RegisteredID": 8}
"""The numbers of RFC 5280."""


@dataclass(frozen=True, slots=True)
class CertifiedName:
    """The certificate of one alias. name: as Java shows it. alternative_names: kind and value, as `[2, localhost]`."""

    alias: str
    name: str
    alternative_names: frozenset[str]

    @property
    def canonical_name(self) -> str:
        """The name without the differences that Java's comparison does not see."""
        return " ".join(self.name.casefold().split())

    @property
    def shown_alternative_names(self) -> str:
        return f"[{', '.join(sorted(self.alternative_names))}]"


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
        name = ", ".join(name_parts(subject(certificate)))
        parsed = x509.load_der_x509_certificate(certificate)
        try:
            extension = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        except x509.ExtensionNotFound:
            return CertifiedName(alias, name, frozenset())
        return CertifiedName(alias, name, frozenset(map(_alternative_name, extension.value)))
    except (UnusableName, MalformedDer, ValueError) as error:
        raise UnreadableStore(f"the certificate of {alias} is malformed: {error}") from None


def _alternative_name(name: GeneralName) -> str:
    from cryptography import x509

    value = name.value
    if isinstance(name, x509.IPAddress) and getattr(value, "version", 0) == 6:
        value = ":".join(f"{int(group, 16):x}" for group in value.exploded.split(":"))
    elif isinstance(value, x509.Name):
        value = value.rfc4514_string()
    elif isinstance(value, x509.ObjectIdentifier):
        value = value.dotted_string
    return f"[{_KINDS[type(name).__name__]}, {value}]"
