"""Whether a key store may take the place of another while a listener runs: the rules of Kafka's `SslFactory`.

A broker keeps its name when its certificate is renewed: the distinguished name stays, and no alternative name is lost.
Between brokers, what a broker shows must verify with what it trusts, which a handshake in memory finds out.
"""

from __future__ import annotations

import ssl
from dataclasses import replace

from pykbroker.config import ConfigurationError

from .contexts import client_context, server_context
from .identity import CertifiedName, Identity
from .own_keys import openssl_reason
from .settings import TlsSettings

_MOST_STEPS = 16
"""A handshake takes two or three turns of each side."""


def check_replacement(old: Identity, new: Identity, *, allow_dn_changes: bool, allow_san_changes: bool) -> None:
    """Raises ConfigurationError, in Kafka's words."""
    if allow_dn_changes and allow_san_changes:
        return
    if len(old.entries) != len(new.entries):
        raise ConfigurationError(
            f"Keystore entries do not match, existing store contains {len(old.entries)} entries, "
            f"new store contains {len(new.entries)} entries"
        )
    for before, after in zip(old.entries, new.entries, strict=True):
        if not allow_dn_changes and _canonical(before) != _canonical(after):
            raise ConfigurationError(
                "Keystore DistinguishedName does not match:  "
                f"existing={{alias={before.alias}, DN={before.name}}}, new={{alias={after.alias}, DN={after.name}}}"
            )
        if not allow_san_changes and not before.alternative_names <= after.alternative_names:
            raise ConfigurationError(
                f"Keystore SubjectAltNames do not match:  existing={{alias={before.alias}, SAN={_shown(before)}}}, "
                f"new={{alias={after.alias}, SAN={_shown(after)}}}"
            )


def verify_against_itself(settings: TlsSettings) -> None:
    """Raises ConfigurationError unless a client with these settings can connect to a server with them."""
    verify_against_each_other(settings, settings)


def verify_against_each_other(old: TlsSettings, new: TlsSettings) -> None:
    """Raises ConfigurationError unless either can connect to the other. Names of hosts are not compared."""
    for server, client in ((old, new), (new, old)) if old != new else ((old, new),):
        served = server_context(server).context
        connecting = client_context(replace(client, endpoint_identification_algorithm=""))
        try:
            _shake_hands(served, connecting)
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", "") or openssl_reason(error)
            name = client.name_of("ssl.truststore.location")
            raise ConfigurationError(
                "A client SSLEngine created with the provided settings can't connect to a server SSLEngine created "
                f"with those settings: {reason}; look at {name} and {server.name_of('ssl.keystore.location')}"
            ) from None


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


def _canonical(certified: CertifiedName) -> str:
    """Return the name without the differences that Java's comparison does not see."""
    return " ".join(certified.name.casefold().split())


def _shown(certified: CertifiedName) -> str:
    return f"[{', '.join(sorted(certified.alternative_names))}]"
