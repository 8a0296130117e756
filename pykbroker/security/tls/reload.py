"""Replacement of a listener's stores while it runs, by the rules of Kafka's `SslFactory`.

A broker keeps its name when its certificate is renewed: the distinguished name stays, and no alternative name is lost.
Between brokers, what a broker shows must verify with what it trusts, before and after the change and in between, which
a handshake in memory finds out.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, replace

from .contexts import ServerTls, WithoutKey, client_context, server_context
from .identity import Identity
from .own_keys import openssl_reason
from .refusals import HANDSHAKE_EXCEPTION, RefusedReplacement
from .settings import TlsSettings

_MOST_STEPS = 16
"""A handshake takes two or three turns of each side."""


def check_replacement(old: Identity, new: Identity, *, allow_dn_changes: bool, allow_san_changes: bool) -> None:
    """Raises ConfigurationError, in Kafka's words."""
    if allow_dn_changes and allow_san_changes:
        return
    if len(old.entries) != len(new.entries):
        raise RefusedReplacement(
            f"Keystore entries do not match, existing store contains {len(old.entries)} entries, "
            f"new store contains {len(new.entries)} entries"
        )
    pairs = list(zip(old.entries, new.entries, strict=True))
    for before, after in () if allow_dn_changes else pairs:
        if before.canonical_name != after.canonical_name:
            raise RefusedReplacement(
                "Keystore DistinguishedName does not match:  "
                f"existing={{alias={before.alias}, DN={before.name}}}, new={{alias={after.alias}, DN={after.name}}}"
            )
    for before, after in () if allow_san_changes else pairs:
        if not before.alternative_names <= after.alternative_names:
            raise RefusedReplacement(
                "Keystore SubjectAltNames do not match:  "
                f"existing={{alias={before.alias}, SAN={before.shown_alternative_names}}}, "
                f"new={{alias={after.alias}, SAN={after.shown_alternative_names}}}"
            )


def server_in_place_of(
    old: Identity, settings: TlsSettings, *, allow_dn_changes: bool, allow_san_changes: bool
) -> ServerTls:
    """Return the context of a listener that had another key store. Raises ConfigurationError, in Kafka's words."""
    try:
        new = server_context(settings)
    except WithoutKey as error:
        check_replacement(old, error.identity, allow_dn_changes=allow_dn_changes, allow_san_changes=allow_san_changes)
        raise
    check_replacement(old, new.identity, allow_dn_changes=allow_dn_changes, allow_san_changes=allow_san_changes)
    return new


def check_trust_stores(old: TlsSettings, new: TlsSettings) -> None:
    """Raises ConfigurationError where a listener would get a trust store that had none."""
    if _has_trust_store(new) and not _has_trust_store(old):
        raise RefusedReplacement(
            "Cannot add SSL truststore to an existing listener for which no truststore was configured."
        )


@dataclass(frozen=True, slots=True)
class BothEnds:
    """Both ends of a listener's connections, from one reading of its stores. client: it compares no names of hosts."""

    server: ssl.SSLContext
    client: ssl.SSLContext

    @classmethod
    def of(cls, settings: TlsSettings, server: ServerTls | None = None) -> BothEnds:
        """Raises ConfigurationError. server: what has been read already."""
        unnamed = replace(settings, endpoint_identification_algorithm="")
        return cls((server or server_context(settings)).context, client_context(unnamed))


def verify(old: BothEnds, new: BothEnds) -> None:
    """Raises ConfigurationError unless each can connect to the other."""
    for server, client in ((old.server, new.client), (new.server, old.client)):
        try:
            _shake_hands(server, client)
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", "") or openssl_reason(error)
            raise RefusedReplacement(
                "A client SSLEngine created with the provided settings can't connect to a server SSLEngine created "
                f"with those settings: {reason}",
                HANDSHAKE_EXCEPTION,
            ) from None


def _has_trust_store(settings: TlsSettings) -> bool:
    return settings.truststore_location is not None or settings.truststore_certificates is not None


def _shake_hands(served: ssl.SSLContext, connecting: ssl.SSLContext) -> None:
    """Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = served.wrap_bio(to_server, to_client, server_side=True)
    client = connecting.wrap_bio(to_client, to_server)
    for _ in range(_MOST_STEPS):
        client_is_done = _is_done(client)
        if _is_done(server) and client_is_done:
            return
    raise ssl.SSLError("the handshake does not end")


def _is_done(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
