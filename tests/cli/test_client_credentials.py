"""The user of a command: `sasl.mechanism` and `sasl.jaas.config` of its properties file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pykbroker.client.from_properties import read_credentials
from pykbroker.config.keys import ConfigurationError
from tests.cli.conftest import Outcome

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LINE = f'{SCRAM} required username="alice" password="hunter2";'


def test_the_user_is_read() -> None:
    credentials = read_credentials({"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": LINE})
    assert credentials.mechanism == "SCRAM-SHA-256"
    assert credentials.new_exchange().step(b"").startswith(b"n,,n=alice,r=")
    assert "hunter2" not in repr(credentials)


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"sasl.jaas.config": LINE}, "GSSAPI for configuration sasl.mechanism: GSSAPI (Kerberos), Kafka's default"),
        ({"sasl.mechanism": "PLAIN"}, "sasl.jaas.config is missing"),
        ({"sasl.mechanism": "PLAIN", "sasl.jaas.config": LINE}, "sasl.jaas.config: the login module of PLAIN is"),
        ({"sasl.mechanism": "PLAIN", "sasl.jaas.config": "hunter2"}, "sasl.jaas.config: a control flag is expected"),
        (
            {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": f"{SCRAM} required password=hunter2;"},
            "sasl.jaas.config: username must be given",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line_without_a_secret(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_credentials(properties)
    assert reason in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_broker_that_asks_for_no_password_says_so(call: Callable[..., Outcome], tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={LINE}\n")
    refused = call(f"topics --list --command-config {properties}")
    assert (refused.code, refused.out) == (1, "")
    assert "asks for no authentication there: the listener has no SASL" in refused.err
