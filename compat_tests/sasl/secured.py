"""A broker with SASL listeners beside its PLAINTEXT one, and the users that it knows."""

from __future__ import annotations

from dataclasses import dataclass

from compat_tests.brokers import BrokerProcess
from compat_tests.ports import take_ports
from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from pykbroker.security.sasl.scram_credential import MECHANISMS

from ..wire import Wire

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob, secret=1"}
"""Of PLAIN; SCRAM has alice alone, with the same password and in both mechanisms."""

SALT = b"1omfro7zwmumr3umxudzyj6scf"

REAUTHENTICATION_MS = 3_000


@dataclass(frozen=True, slots=True)
class Secured:
    """The addresses of a broker. expiring: a listener whose sessions end."""

    broker: BrokerProcess
    sasl: tuple[str, int]
    expiring: tuple[str, int]

    @property
    def bootstrap(self) -> str:
        return f"{self.sasl[0]}:{self.sasl[1]}"


def secure(broker: BrokerProcess) -> Secured:
    """Give a broker that has not been started its SASL listeners."""
    sasl_port, expiring_port = take_ports(2)
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    plain = f'{PLAIN_MODULE} required username="admin" password="{PASSWORDS["admin"]}" {users};'
    broker.properties |= {
        "listeners": f"PLAINTEXT://{broker.bootstrap},CONTROLLER://127.0.0.1:{broker.controller_port},"
        f"SASL_PLAINTEXT://127.0.0.1:{sasl_port},EXPIRING://127.0.0.1:{expiring_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "EXPIRING:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.expiring.connections.max.reauth.ms": str(REAUTHENTICATION_MS),
    }
    for listener in ("sasl_plaintext", "expiring"):
        broker.properties[f"listener.name.{listener}.plain.sasl.jaas.config"] = plain
        for mechanism in MECHANISMS:
            key = f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"
            broker.properties[key] = f"{SCRAM_MODULE} required;"
    return Secured(broker, ("127.0.0.1", sasl_port), ("127.0.0.1", expiring_port))


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
