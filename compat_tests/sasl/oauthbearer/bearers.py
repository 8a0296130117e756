"""A broker that takes tokens, and the authorization server that makes them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from compat_tests.authorization_server import AuthorizationServer
from compat_tests.brokers import BrokerProcess
from compat_tests.certificates import Authority
from compat_tests.key_stores import write_pem, write_pem_trust
from compat_tests.ports import take_ports
from pykbroker.security.sasl.oauthbearer.allowed_urls import PROPERTY
from tests.security.sasl.tokens import claims, jwk, jwks, other_rsa_key, part, rsa_key, signed

PACKAGE = "org.apache.kafka.common.security.oauthbearer"
MODULE = f"{PACKAGE}.OAuthBearerLoginModule"
LISTENERS = {
    "UNSECURED": "SASL_PLAINTEXT",
    "SIGNED": "SASL_PLAINTEXT",
    "ENCRYPTED": "SASL_SSL",
    "FROMFILE": "SASL_PLAINTEXT",
}
"""Their security protocols. FROMFILE has its keys from a file, the two before it from the authorization server."""

KID = "main"
REFUSED = ("expired", "wrong signature", "unknown key")


@dataclass(frozen=True, slots=True)
class Bearers:
    """ports: by listener. trusted: the authority of broker and authorization server. document: the keys of FROMFILE."""

    broker: BrokerProcess
    issuer: AuthorizationServer
    authority: Authority
    trusted: Path
    document: Path
    ports: dict[str, int] = field(default_factory=dict)

    def address(self, listener: str) -> tuple[str, int]:
        return "127.0.0.1", self.ports[listener]

    def bootstrap(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"


def good_document() -> bytes:
    return jwks(jwk(rsa_key(), KID, alg="RS256", use="sig"))


def token(lifetime_s: float = 600, *, kid: str = KID, key: Any = None, **changes: Any) -> str:
    """A token with a signature, issued ten seconds ago; with changes of its claims."""
    now_s = int(time.time())
    given = claims(now_s, iat=now_s - 10, exp=now_s + lifetime_s, scope="read") | changes
    given = {name: value for name, value in given.items() if value is not None}
    return signed(key or rsa_key(), {"alg": "RS256", "kid": kid}, given)


def unsecured(lifetime_s: float = 600, **changes: Any) -> str:
    now_s = time.time()
    given = {"sub": "alice", "iat": now_s - 10, "exp": now_s + lifetime_s, **changes}
    return f"{part({'alg': 'none'})}.{part({name: value for name, value in given.items() if value is not None})}."


def tokens(case: str) -> str:
    """The token of a case: `right`, or one of REFUSED."""
    match case:
        case "right":
            return token()
        case "expired":
            return token(-60)
        case "wrong signature":
            return token(key=other_rsa_key())
        case _:
            return token(kid="nobody's")


def set_up(broker: BrokerProcess, issuer: AuthorizationServer, authority: Authority, directory: Path) -> Bearers:
    """Give a broker that has not been started its listeners."""
    found = Bearers(
        broker,
        issuer,
        authority,
        write_pem_trust(directory / "trusted.pem", authority),
        directory / "keys.json",
        dict(zip(LISTENERS, take_ports(len(LISTENERS)), strict=True)),
    )
    found.document.write_bytes(good_document())
    file_url = f"file://{found.document}"
    for name in ("KAFKA_OPTS", "JAVA_TOOL_OPTIONS"):
        broker.place = replace(
            broker.place, enter=(*(broker.place.enter or ("env",)), f"{name}=-D{PROPERTY}={issuer.keys_url},{file_url}")
        )
    listeners = [f"PLAINTEXT://{broker.bootstrap}", f"CONTROLLER://127.0.0.1:{broker.controller_port}"]
    protocols = ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT"]
    for name, protocol in LISTENERS.items():
        listeners.append(f"{name}://127.0.0.1:{found.ports[name]}")
        protocols.append(f"{name}:{protocol}")
    # Kafka logs in on each listener, whether or not it needs a token of its own there.
    line = f'{MODULE} required unsecuredLoginStringClaim_sub="broker"'
    trust = f'ssl.truststore.location="{found.trusted}" ssl.truststore.type="PEM"'
    broker.properties |= {
        "listeners": ",".join(listeners),
        "advertised.listeners": ",".join(
            each.replace("//127.0.0.1", "//localhost") for each in listeners if "CONTR" not in each
        ),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ",".join(protocols),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.unsecured.oauthbearer.sasl.jaas.config": f"{line} "
        'unsecuredValidatorRequiredScope="read" unsecuredValidatorAllowableClockSkewMs="5000";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(write_pem(directory / "broker.pem", authority.server())),
    }
    for name in ("signed", "encrypted", "fromfile"):
        prefix = f"listener.name.{name}.oauthbearer.sasl"
        broker.properties |= {
            f"{prefix}.jaas.config": f"{line} {trust};",
            f"{prefix}.server.callback.handler.class": f"{PACKAGE}.OAuthBearerValidatorCallbackHandler",
            f"{prefix}.oauthbearer.jwks.endpoint.url": file_url if name == "fromfile" else issuer.keys_url,
            f"{prefix}.oauthbearer.expected.audience": "kafka",
            f"{prefix}.oauthbearer.expected.issuer": "https://issuer.example.org/",
        }
    return found
