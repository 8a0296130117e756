"""Stock clients that log in over TLS with each mechanism: both brokers serve the same ones, and tell others the same.

Without TLS it is `test_sasl_clients`, and without SASL `compat_tests/tls`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.tls.conftest import client_called, java_clients
from compat_tests.tls.reasons import SERVED
from compat_tests.tls.tls_clients import Connection, TlsClient, User

from .secured import PASSWORDS, Secured

__all__ = ["client_called", "java_clients"]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MARKS = {"java": [pytest.mark.java, pytest.mark.spark], "kcat": [pytest.mark.kcat]}
CLIENTS = ("java", "librdkafka", "kafka-python", "aiokafka", "kcat")
WITHOUT_SCRAM = ("kcat",)
"""librdkafka before 2.8 repeats a wrong nonce, which Kafka refuses since CVE-2024-56128."""

LOSE_ANSWERS = ("kafka-python",)
"""Over TLS it does not read the refusal where the end of the connection comes with it."""


@dataclass(frozen=True, slots=True)
class Case:
    """What differs from alice, who knows her password and trusts the broker's authority."""

    name: str
    user: str = "alice"
    password: str = PASSWORDS["alice"]
    is_elsewhere: bool = False
    is_stranger: bool = False

    @property
    def is_served(self) -> bool:
        return self == RIGHT

    def connection(self, secured: Secured, mechanism: str) -> Connection:
        host, port = secured.elsewhere if self.is_elsewhere else secured.tls
        trust = secured.stranger if self.is_stranger else secured.authority
        return Connection(f"{host}:{port}", trust, user=User(mechanism, self.user, self.password))


RIGHT = Case("right")
CASES = [
    RIGHT,
    Case("wrong password", password="wrong"),
    Case("unknown user", user="mallory"),
    Case("an authority that is not the broker's", is_stranger=True),
    Case("a broker with another host's certificate", is_elsewhere=True),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, [])) for name in CLIENTS])
def test_who_knows_the_password_is_served(
    name: str, mechanism: str, secured: Secured, client_called: Callable[[str], TlsClient], answers: TestAnswers
) -> None:
    client = client_called(name)
    for case in CASES:
        outcome = client.attempt(case.connection(secured, mechanism))
        answers.same(case.name, outcome.partition(":")[0] if name in LOSE_ANSWERS else outcome)
        if name not in WITHOUT_SCRAM or mechanism == "PLAIN" or case.is_elsewhere or case.is_stranger:
            assert (outcome == SERVED) == case.is_served
