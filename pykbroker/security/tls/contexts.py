"""Contexts of OpenSSL from settings: what a listener serves with, and what a client connects with.

Like Java, any certificate of the trust store ends a chain, not only that of a root. Without a trust store the system's
authorities are trusted. Without `ssl.cipher.suites` Python's choice is offered: forward secrecy, no CBC with SHA-1.
Unlike Java, a server does not tell clients the names of the authorities that it trusts, since Python has no way to:
a client with a certificate of another one sends it and is refused, where Java and librdkafka would keep it back.

Opening stores derives keys from passwords, which takes up to a second, so it belongs into a thread.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterable
from dataclasses import dataclass

from pykbroker.config import ConfigurationError, InvalidValue

from . import dh_group
from .cipher_suites import OPENSSL_NAMES, TLS_1_3_SUITES
from .identity import Identity
from .own_keys import chosen_keys, openssl_reason
from .refusals import WRONG_KEY_PASSWORD, RefusedValue, not_loaded
from .settings import TlsSettings
from .store_contents import KeyPasswordRefused, StoreContents, UnreadableStore
from .stores import key_store, trust_store

logger = logging.getLogger(__name__)

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_TICKETS = 1
"""As Java sends for each handshake. Of a session in a ticket nothing is kept. OpenSSL keeps those of TLS 1.2 without
tickets: five minutes, 20,480 at most, as many as Java; 1 kB each, and 11 kB with a client's certificate.
"""


@dataclass(frozen=True, slots=True)
class ServerTls:
    """TLS of a listener. identity: that of its key store, for checks when it is replaced."""

    context: ssl.SSLContext
    identity: Identity


class WithoutKey(InvalidValue):
    """A key store without a private key, which Kafka compares with another one all the same."""

    def __init__(self, name: str, value: object, identity: Identity) -> None:
        super().__init__(name, value, "no private key is in it")
        self.identity = identity


def server_context(settings: TlsSettings) -> ServerTls:
    """Return the context of a listener. Raises ConfigurationError, in one line that names key, file and reason."""
    store, trusted = key_store(settings), trust_store(settings)
    if store is None:
        location, key = settings.missing("ssl.keystore.location"), settings.missing("ssl.keystore.key")
        raise ConfigurationError(f"A listener with TLS has no key store: {location} is not given, nor {key}")
    context = _context(ssl.PROTOCOL_TLS_SERVER, settings, settings.enabled_protocols)
    context.num_tickets = _TICKETS
    if any(OPENSSL_NAMES.get(each, "").startswith("DHE-") for each in settings.cipher_suites):
        dh_group.load_into(context)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    if settings.client_auth != "none":
        # Otherwise OpenSSL would only make the chain longer by what is trusted.
        _trust(context, settings, trusted, ssl.Purpose.CLIENT_AUTH)
        if trusted is None:
            name, auth = settings.name_of("ssl.truststore.location"), settings.name_of("ssl.client.auth")
            logger.warning("%s=%s without %s trusts each authority of the system", auth, settings.client_auth, name)
    return ServerTls(context, _offer_keys(context, settings, store))


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context of a client, which always wants a certificate that verifies. Raises ConfigurationError."""
    protocols = settings.enabled_protocols
    if settings.protocol == "TLSv1.2":
        protocols = tuple(each for each in protocols if each == settings.protocol)
    if not protocols:
        enabled = settings.name_of("ssl.enabled.protocols")
        raise InvalidValue(
            settings.name_of("ssl.protocol"),
            settings.protocol,
            f"a client offers no more, and {enabled} has only TLSv1.3",
        )
    context = _context(ssl.PROTOCOL_TLS_CLIENT, settings, protocols)
    context.check_hostname = settings.endpoint_identification_algorithm == "https"
    store, trusted = key_store(settings), trust_store(settings)
    _trust(context, settings, trusted, ssl.Purpose.SERVER_AUTH)
    if store is not None:
        _offer_keys(context, settings, store)
    return context


def _context(role: int, settings: TlsSettings, protocols: Iterable[str]) -> ssl.SSLContext:
    """Return a context that offers the versions for which there are suites."""
    suites = settings.cipher_suites
    older = [OPENSSL_NAMES[each] for each in suites if each in OPENSSL_NAMES]
    usable = {"TLSv1.2": older or not suites, "TLSv1.3": not suites or set(suites).issuperset(TLS_1_3_SUITES)}
    versions = sorted(_VERSIONS[each] for each in protocols if usable[each])
    if not versions:
        reason = f"no suite of it belongs to {' or '.join(protocols)}"
        raise InvalidValue(settings.name_of("ssl.cipher.suites"), ",".join(suites), reason)
    context = ssl.SSLContext(role)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    if older:
        context.set_ciphers(":".join(older))
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    return context


def _trust(context: ssl.SSLContext, settings: TlsSettings, store: StoreContents | None, purpose: ssl.Purpose) -> None:
    if store is None:
        context.load_default_certs(purpose)
        return
    try:
        context.load_verify_locations(cadata=b"".join(store.anchors))
    except ssl.SSLError as error:
        key = "ssl.truststore.location" if settings.truststore_location else "ssl.truststore.certificates"
        reason = f"a certificate in it is malformed: {openssl_reason(error)}"
        raise InvalidValue(settings.name_of(key), settings.truststore_location or "[hidden]", reason) from None


def _offer_keys(context: ssl.SSLContext, settings: TlsSettings, store: StoreContents) -> Identity:
    key = "ssl.keystore.location" if settings.keystore_location else "ssl.keystore.key"
    name, shown = settings.name_of(key), settings.keystore_location or "[hidden]"
    try:
        identity = Identity.of(store)
        if not store.keys:
            raise WithoutKey(name, shown, identity)
        for each in chosen_keys(store, settings.password_of_keys):
            if each.invalid_because:
                logger.warning("%s=%s: the certificate of %s %s", name, shown, each.alias, each.invalid_because)
            each.load_into(context)
        return identity
    except KeyPasswordRefused as error:
        reason = f"{error}; see {settings.name_of('ssl.key.password')}"
        is_pem = settings.keystore_type == "PEM"
        in_kafka = not_loaded(settings.keystore_location, "PEM") if is_pem else WRONG_KEY_PASSWORD
        raise RefusedValue(name, shown, reason, in_kafka) from None
    except UnreadableStore as error:
        raise InvalidValue(name, shown, str(error)) from None
