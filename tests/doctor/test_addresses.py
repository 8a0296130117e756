"""The addresses at which a broker is looked for, and at which it is not."""

from __future__ import annotations

import ssl

import pytest

from pykbroker.client.metadata import Node
from pykbroker.doctor.access import Access
from pykbroker.doctor.addresses import MOST_CANDIDATES, AddressLook
from pykbroker.security.sasl.credentials import Credentials, client_credentials
from pykbroker.security.sasl.jaas import parse_one

from .cluster_facts import served

_LINE = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";'


def _credentials() -> Credentials:
    return client_credentials("sasl.jaas.config", "PLAIN", parse_one("sasl.jaas.config", _LINE))


@pytest.mark.parametrize(
    ("protocol", "has_tls", "tries_localhost"),
    [("PLAINTEXT", False, True), ("SASL_SSL", True, True), ("SASL_PLAINTEXT", False, False)],
)
def test_a_password_in_plain_goes_to_nobody_who_was_not_named(
    protocol: str, has_tls: bool, tries_localhost: bool
) -> None:
    context = ssl.create_default_context() if has_tls else None
    access = Access(protocol, context, _credentials() if protocol.startswith("SASL") else None)
    look = AddressLook(access, served("boot", 9092))
    candidates = look._candidates(Node(1, "kafka", 19092))
    assert candidates[:3] == [("boot", 9092), ("boot", 19092), ("kafka", 9092)]
    assert any(host == "localhost" for host, _ in candidates) == tries_localhost
    assert len(candidates) <= MOST_CANDIDATES
