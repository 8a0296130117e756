"""The outcome of one try to reach a broker at an address, up to its answer to Metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pykbroker.client.metadata import Node
from pykbroker.protocol.schema import Versions


class Outcome(StrEnum):
    """The values are the ends of the ids of findings."""

    SERVED = "served"
    UNRESOLVED = "unresolved"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timeout"
    CLOSED = "closed"
    SILENT = "silent"
    NOT_KAFKA = "not-kafka"
    NEEDS_TLS = "needs-tls"
    NO_TLS = "no-tls"
    CERTIFICATE_EXPIRED = "certificate-expired"
    CERTIFICATE_NOT_YET_VALID = "certificate-not-yet-valid"
    CERTIFICATE_OF_ANOTHER_HOST = "certificate-host"
    CERTIFICATE_OF_UNKNOWN_AUTHORITY = "certificate-authority"
    CERTIFICATE_BAD = "certificate-bad"
    CLIENT_CERTIFICATE_REFUSED = "client-certificate"
    TLS_FAILED = "tls-failed"
    NEEDS_SASL = "needs-sasl"
    NO_SASL = "no-sasl"
    MECHANISM_NOT_OFFERED = "sasl-mechanism"
    NOT_AUTHENTICATED = "authentication"


@dataclass(frozen=True, slots=True)
class ListenerKind:
    """A listener, found out without a password. has_sasl: None where it does not say. mechanisms: those it offers."""

    has_tls: bool
    has_sasl: bool | None = None
    mechanisms: tuple[str, ...] = ()

    @property
    def security_protocol(self) -> str | None:
        if self.has_sasl is None:
            return None
        return ("SASL_" if self.has_sasl else "") + ("SSL" if self.has_tls else "PLAINTEXT")


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """The answers of a broker to ApiVersions and Metadata. features: the finalized ones."""

    versions: Mapping[int, Versions]
    features: Mapping[str, int]
    cluster_id: str | None
    controller_id: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Knock:
    """One try.

    detail: what was seen, in few words. resolved: the addresses behind the host's name. kind: what the listener is,
    where it is not what the client's settings say. certificate_ends_s: of a verified one, in seconds since 1970.
    """

    host: str
    port: int
    outcome: Outcome
    detail: str = ""
    resolved: tuple[str, ...] = ()
    kind: ListenerKind | None = None
    answer: BrokerAnswer | None = None
    certificate_ends_s: float | None = field(default=None)

    @property
    def is_served(self) -> bool:
        return self.outcome is Outcome.SERVED

    @property
    def address(self) -> str:
        return address_text(self.host, self.port)


def address_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
