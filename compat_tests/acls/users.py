"""Users with passwords, a broker that knows them, and a socket that logs in as one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compat_tests.ports import take_ports
from compat_tests.wire import Wire
from pykbroker.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

ADMIN, ALICE, BOB, ANONYMOUS = "admin", "alice", "bob", "ANONYMOUS"

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{ADMIN}",
}


def password(user: str) -> str:
    return f"{user}-secret"


class Listeners:
    """The listeners of a broker: users log in at `sasl` and `controller`, and everybody is anonymous at `plaintext`."""

    def __init__(self, plaintext: int, controller: int, users: Sequence[str] = (ADMIN, ALICE, BOB)) -> None:
        (self.sasl,) = take_ports(1)
        self.plaintext, self.controller = plaintext, controller
        self._users = users

    def properties(self, others: Mapping[str, str] | None = None) -> dict[str, str]:
        known = " ".join(f'user_{user}="{password(user)}"' for user in self._users)
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        jaas = f'{module} required username="{ADMIN}" password="{password(ADMIN)}" {known};'
        return {
            "listeners": f"SASL://127.0.0.1:{self.sasl},PLAINTEXT://127.0.0.1:{self.plaintext},"
            f"CONTROLLER://127.0.0.1:{self.controller}",
            "listener.security.protocol.map": "SASL:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "inter.broker.listener.name": "SASL",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": jaas,
            "listener.name.controller.plain.sasl.jaas.config": jaas,
            **AUTHORIZER,
            **(others or {}),
        }

    def address(self, user: str) -> tuple[str, int]:
        return "127.0.0.1", self.plaintext if user == ANONYMOUS else self.sasl


def log_in(wire: Wire, user: str) -> None:
    """Log in by SASL/PLAIN; nothing is done for who stays anonymous."""
    if user == ANONYMOUS:
        return
    handshake: Any = wire.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert not handshake.error_code, handshake
    token = f"\0{user}\0{password(user)}".encode()
    done: Any = wire.call(SaslAuthenticateRequest(auth_bytes=token), 2)
    assert not done.error_code, done
