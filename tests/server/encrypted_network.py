"""Connections with TLS for tests, on sockets or on the simulated network, with certificates made for the run."""

from __future__ import annotations

import functools
import ssl

import trio

from compat_tests.certificates import Authority, Credential
from compat_tests.key_stores import pem_certificates, pem_key
from pykbroker.security.tls.contexts import client_context, server_context
from pykbroker.security.tls.settings import TlsSettings
from pykbroker.server.network.tls_transport import Handshakes, TlsTransport
from pykbroker.server.network.transport import Acceptor, Network, Transport
from pykbroker.server.runtime.threads import OnTheLoop, Threads


@functools.cache
def authority() -> Authority:
    return Authority.root()


@functools.cache
def server_credential() -> Credential:
    return authority().server()


@functools.cache
def contexts(**server_keys: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of the server, and of a client that trusts it."""
    served = server_context(TlsSettings.of(server_values(**server_keys))).context
    return served, client_context(TlsSettings.of(client_values()))


def server_values(**keys: str) -> dict[str, str]:
    """`ssl.*` settings of a listener; keys: others, without `ssl.` and with `_` for `.`."""
    return {
        **pem_key_store(server_credential()),
        **client_values(),
        **{f"ssl.{name.replace('_', '.')}": text for name, text in keys.items()},
    }


def client_values(credential: Credential | None = None) -> dict[str, str]:
    trusted = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": pem_certificates([authority().certificate]),
    }
    return trusted | (pem_key_store(credential) if credential is not None else {})


def pem_key_store(credential: Credential) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": pem_key(credential),
        "ssl.keystore.certificate.chain": pem_certificates(credential.chain),
    }


class EncryptedNetwork:
    """Connects and accepts in plaintext; `pair` shakes hands."""

    def __init__(self, inner: Network, threads: Threads | None = None) -> None:
        self._inner = inner
        self._handshakes = Handshakes(threads or OnTheLoop())

    async def listen(self, host: str, port: int) -> Acceptor:
        return await self._inner.listen(host, port)

    async def connect(self, host: str, port: int) -> Transport:
        return await self._inner.connect(host, port)

    async def pair(self, client: Transport, server: Transport) -> tuple[TlsTransport, TlsTransport]:
        served, connecting = contexts()
        of_client = TlsTransport(client, connecting, self._handshakes, server_side=False, server_hostname="localhost")
        of_server = TlsTransport(server, served, self._handshakes, server_side=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(of_client.shake_hands)
            nursery.start_soon(of_server.shake_hands)
        return of_client, of_server
