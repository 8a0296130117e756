"""A broker with delegation tokens: users of SASL/PLAIN, an authorizer, and listeners where nobody logs in."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compat_tests.acls.users import ADMIN, Listeners
from compat_tests.brokers import BrokerProcess
from compat_tests.certificates import Authority
from compat_tests.key_stores import pem_certificates, write_pem, write_pem_chain, write_pem_key
from compat_tests.listening import until_it_listens
from compat_tests.ports import take_ports
from compat_tests.wire import Wire
from pykbroker.protocol.messages.delegation_tokens import CreateDelegationTokenResponse
from pykbroker.protocol.messages.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest
from pykbroker.security.sasl.scram_client import ScramClient, ScramPassword
from pykbroker.security.sasl.scram_credential import MECHANISMS

SECRET = "the secret of this cluster"
USERS = (ADMIN, "alice", "bob", "carol", "eve")
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
HOUR_MS = 3_600_000
MAX_LIFETIME_MS, EXPIRY_TIME_MS = 48 * HOUR_MS, 24 * HOUR_MS
TOKENS = {
    "delegation.token.max.lifetime.ms": str(MAX_LIFETIME_MS),
    "delegation.token.expiry.time.ms": str(EXPIRY_TIME_MS),
}


@dataclass(frozen=True, slots=True)
class TokenBroker:
    """The addresses of a broker. with_tls: asks nobody for a certificate, and looks at the one that it is shown."""

    broker: BrokerProcess
    sasl: tuple[str, int]
    controller: tuple[str, int]
    with_tls: tuple[str, int]
    directory: Path

    @property
    def bootstrap(self) -> str:
        return f"{self.sasl[0]}:{self.sasl[1]}"

    @property
    def plaintext(self) -> tuple[str, int]:
        return self.broker.address

    def start(self) -> None:
        """Returns when each listener takes connections, not only the one that the broker is asked at."""
        self.broker.start()
        for address in (self.sasl, self.with_tls):
            until_it_listens(address)


def with_tokens(
    broker: BrokerProcess,
    directory: Path,
    properties: Mapping[str, str] | None = None,
    *,
    secret: str | None = SECRET,
) -> TokenBroker:
    """Give a broker that has not been started its listeners and its secret."""
    listeners = Listeners(broker.port, broker.controller_port, USERS)
    (tls_port,) = take_ports(1)
    with_secret = {} if secret is None else {"delegation.token.secret.key": secret}
    own = listeners.properties({**TOKENS, **with_secret, **(properties or {})})
    own |= {
        "listeners": f"{own['listeners']},SSL://127.0.0.1:{tls_port}",
        "listener.security.protocol.map": f"{own['listener.security.protocol.map']},SSL:SSL",
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *MECHANISMS)),
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.ssl.ssl.client.auth": "requested",
    }
    for mechanism in MECHANISMS:
        own[f"listener.name.sasl.{mechanism.lower()}.sasl.jaas.config"] = f"{SCRAM_MODULE} required;"
    broker.properties |= own | _stores(directory)
    address = "127.0.0.1"
    return TokenBroker(
        broker, (address, listeners.sasl), (address, listeners.controller), (address, tls_port), directory
    )


def _stores(directory: Path) -> dict[str, str]:
    directory.mkdir(parents=True, exist_ok=True)
    authority = Authority.root()
    client = authority.client("CN=dora")
    (directory / "ca.pem").write_text(pem_certificates([authority.certificate]))
    write_pem_chain(directory / "client-chain.pem", client)
    write_pem_key(directory / "client-key.pem", client)
    return {
        "listener.name.ssl.ssl.keystore.type": "PEM",
        "listener.name.ssl.ssl.keystore.location": str(write_pem(directory / "server.pem", authority.server())),
        "listener.name.ssl.ssl.truststore.type": "PEM",
        "listener.name.ssl.ssl.truststore.location": str(directory / "ca.pem"),
    }


class TlsWire(Wire):
    """A connection with TLS, with or without the certificate of dora."""

    def __init__(self, tokens: TokenBroker, *, has_certificate: bool) -> None:
        super().__init__(tokens.with_tls)
        context = ssl.create_default_context(cafile=str(tokens.directory / "ca.pem"))
        if has_certificate:
            context.load_cert_chain(tokens.directory / "client-chain.pem", tokens.directory / "client-key.pem")
        self._socket = context.wrap_socket(self._socket, server_hostname="127.0.0.1")


@dataclass(frozen=True, slots=True)
class Token:
    """A token as a client has it."""

    token_id: str
    hmac: bytes

    @classmethod
    def of(cls, created: CreateDelegationTokenResponse) -> Token:
        assert not created.error_code, created
        return cls(created.token_id, bytes(created.hmac))

    @property
    def password(self) -> str:
        return b64encode(self.hmac).decode()


def log_in_by_token(
    wire: Wire,
    token: Token,
    mechanism: str = "SCRAM-SHA-256",
    *,
    tokenauth: str = "true",
    authenticate_version: int = 2,
) -> SaslAuthenticateResponse:
    """Return the last answer: of the server's proof, or of its refusal."""
    client = ScramClient(
        MECHANISMS[mechanism],
        ScramPassword(token.token_id, token.password),
        "nonce",
        extensions={"tokenauth": tokenauth},
    )
    wire.call(SaslHandshakeRequest(mechanism=mechanism), 1)
    challenge, answer = b"", SaslAuthenticateResponse()
    while not client.is_complete:
        response = client.step(challenge)
        if not response:
            continue
        found = wire.call(SaslAuthenticateRequest(auth_bytes=response), authenticate_version)
        assert isinstance(found, SaslAuthenticateResponse)
        answer = found
        if answer.error_code:
            return answer
        challenge = bytes(answer.auth_bytes)
    return answer
