"""Handshakes of TLS in memory, between a context that serves and one that connects."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from compat_tests.certificates import Authority, Credential
from compat_tests.key_stores import pem_certificates, pem_key

_MOST_TURNS = 16


@dataclass(frozen=True, slots=True)
class Pair:
    """Both ends of a connection after their handshake."""

    server: ssl.SSLObject
    client: ssl.SSLObject

    @property
    def version(self) -> str | None:
        return self.client.version()

    @property
    def suite(self) -> str:
        chosen = self.client.cipher()
        assert chosen is not None
        return chosen[0]

    @property
    def server_certificate(self) -> bytes | None:
        return self.client.getpeercert(binary_form=True)

    @property
    def client_certificate(self) -> bytes | None:
        return self.server.getpeercert(binary_form=True)

    def send_session(self) -> ssl.SSLSession | None:
        """Have the client read what the server sends behind its handshake: the ticket of TLS 1.3."""
        self.server.write(b"x")
        assert self.client.read(1) == b"x"
        return self.client.session


def shake_hands(
    server: ssl.SSLContext, client: ssl.SSLContext, host: str | None = None, session: ssl.SSLSession | None = None
) -> Pair:
    """Raises ssl.SSLError, as the first of both ends that refuses the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    pair = Pair(
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname=host, session=session),
    )
    for _ in range(_MOST_TURNS):
        if all([_is_done(end) for end in (pair.client, pair.server)]):  # noqa: C419  # both ends have their turn
            return pair
    raise AssertionError("the handshake does not end")


def _is_done(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def key_store(credential: Credential) -> dict[str, str]:
    """Return the values of a key store in PEM, without a file."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": pem_key(credential),
        "ssl.keystore.certificate.chain": pem_certificates(credential.chain),
    }


def trust_store(*authorities: Authority | Credential) -> dict[str, str]:
    """Return the values of a trust store in PEM, without a file."""
    trusted = pem_certificates(each.certificate for each in authorities)
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}


def store_file(kind: str, path: Path, store_type: str, password: str | None = None) -> dict[str, str]:
    """Return the values of a file. kind: `keystore` or `truststore`."""
    values = {f"ssl.{kind}.location": str(path), f"ssl.{kind}.type": store_type}
    return values if password is None else values | {f"ssl.{kind}.password": password}
