"""A port for clients in the place of the one in `listeners`."""

from __future__ import annotations

import pytest

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.client_port import at_client_port


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"listeners": "PLAINTEXT://127.0.0.1:0"}),
        ({"listeners": "PLAINTEXT://:9092"}, {"listeners": "PLAINTEXT://:0"}),
        ({"listeners": "PLAINTEXT://[::1]:9092"}, {"listeners": "PLAINTEXT://[::1]:0"}),
        (
            {"listeners": "CONTROLLER://127.0.0.1:9093,SSL://127.0.0.1:9092,PLAINTEXT://127.0.0.1:9091"},
            {"listeners": "CONTROLLER://127.0.0.1:9093,SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:9091"},
        ),
        (
            {"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://here:9092"},
            {"listeners": "PLAINTEXT://:0", "advertised.listeners": "PLAINTEXT://here:0"},
        ),
        (  # another machine passes that port on
            {"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://there:19092"},
            {"listeners": "PLAINTEXT://:0", "advertised.listeners": "PLAINTEXT://there:19092"},
        ),
    ],
)
def test_the_first_listener_for_clients_moves(given: dict[str, str], expected: dict[str, str]) -> None:
    names = {"inter.broker.listener.name": "PLAINTEXT", "ssl.keystore.location": "x"} if "SSL" in str(given) else {}
    config = BrokerConfig(given | names)
    assert at_client_port(config, 0) == expected
    moved = BrokerConfig(given | names | at_client_port(config, 7)).listeners
    assert moved.client[0].port == 7


def test_a_controller_has_no_port_for_clients() -> None:
    config = BrokerConfig(
        {
            "process.roles": "controller",
            "listeners": "CONTROLLER://127.0.0.1:9093",
            "controller.quorum.voters": "1@127.0.0.1:9093",
        }
    )
    with pytest.raises(ConfigurationError, match=r"--port.*broker role"):
        at_client_port(config, 0)
