"""A broker with SASL listeners beside its PLAINTEXT one, and the users that it knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from compat_tests.brokers import BrokerProcess
from compat_tests.certificates import OTHER_HOSTS, Authority
from compat_tests.key_stores import write_pem, write_pem_trust
from compat_tests.ports import take_ports
from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from pykbroker.security.sasl.scram_credential import MECHANISMS

from ..wire import Wire
from .modules import PLAIN_MODULE, SCRAM_MODULE

PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob, secret=1"}
"""Of PLAIN; SCRAM has alice alone, with the same password and in both mechanisms."""

SALT = b"1omfro7zwmumr3umxudzyj6scf"

REAUTHENTICATION_MS = 3_000


@dataclass(frozen=True, slots=True)
class Secured:
    """The addresses of a broker. expiring: a listener whose sessions end. tls: SASL over TLS. elsewhere: as `tls`, with
    the certificate of another host. authority: what clients of both have to trust, and `stranger` what they should not.
    """

    broker: BrokerProcess
    sasl: tuple[str, int]
    expiring: tuple[str, int]
    tls: tuple[str, int]
    elsewhere: tuple[str, int]
    authority: Path
    stranger: Path

    @property
    def bootstrap(self) -> str:
        return f"{self.sasl[0]}:{self.sasl[1]}"


def secure(broker: BrokerProcess) -> Secured:
    """Give a broker that has not been started its SASL listeners."""
    ports = take_ports(4)
    sasl_port, expiring_port, tls_port, elsewhere_port = ports
    authority = Authority.root()
    broker.directory.mkdir(parents=True, exist_ok=True)
    trusted = write_pem_trust(broker.directory / "ca.pem", authority)
    other = Authority.root("CN=Another authority,O=Example")
    stranger = write_pem_trust(broker.directory / "stranger.pem", other)
    own = write_pem(broker.directory / "server.pem", authority.server())
    of_another_host = write_pem(broker.directory / "elsewhere.pem", authority.server(hosts=OTHER_HOSTS))
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    plain = f'{PLAIN_MODULE} required username="admin" password="{PASSWORDS["admin"]}" {users};'
    broker.properties |= {
        "listeners": f"PLAINTEXT://{broker.bootstrap},CONTROLLER://127.0.0.1:{broker.controller_port},"
        f"SASL_PLAINTEXT://127.0.0.1:{sasl_port},EXPIRING://127.0.0.1:{expiring_port},"
        f"SASL_TLS://127.0.0.1:{tls_port},ELSEWHERE://127.0.0.1:{elsewhere_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "EXPIRING:SASL_PLAINTEXT,SASL_TLS:SASL_SSL,ELSEWHERE:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "listener.name.sasl_tls.ssl.keystore.location": str(own),
        "listener.name.elsewhere.ssl.keystore.location": str(of_another_host),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.expiring.connections.max.reauth.ms": str(REAUTHENTICATION_MS),
    }
    for listener in ("sasl_plaintext", "expiring", "sasl_tls", "elsewhere"):
        broker.properties[f"listener.name.{listener}.plain.sasl.jaas.config"] = plain
        for mechanism in MECHANISMS:
            key = f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"
            broker.properties[key] = f"{SCRAM_MODULE} required;"
    addresses = [("127.0.0.1", port) for port in ports]
    return Secured(broker, *addresses, authority=trusted, stranger=stranger)


def add_scram_users(broker: BrokerProcess) -> None:
    """Give alice a credential for each mechanism, over the PLAINTEXT listener."""
    for mechanism in MECHANISMS.values():
        salted = mechanism.salted_password(PASSWORDS["alice"], SALT, 4096)
        change = ScramCredentialUpsertion(
            name="alice", mechanism=mechanism.type, iterations=4096, salt=SALT, salted_password=salted
        )
        with Wire(broker.address) as wire:
            answer = wire.call(AlterUserScramCredentialsRequest(upsertions=[change]), 0)
        assert isinstance(answer, AlterUserScramCredentialsResponse)
        assert [each.error_code for each in answer.results] == [0]
