"""The user of a command: `sasl.mechanism` and `sasl.jaas.config` of its properties file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pykbroker.client.from_properties import read_credentials
from pykbroker.config.keys import ConfigurationError
from pykbroker.security.sasl.oauthbearer.client_first import ClientFirst
from pykbroker.security.sasl.oauthbearer.compact_token import read_token
from tests.cli.conftest import Outcome
from tests.security.sasl.tokens import unsecured

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


BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
URL = "sasl.oauthbearer.token.endpoint.url"


def test_a_token_is_made_from_the_line() -> None:
    line = f'{BEARER} unsecuredLoginStringClaim_sub="alice" unsecuredLoginExtension_traceId="7";'
    credentials = read_credentials({"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": line})
    message = ClientFirst.read(credentials.new_exchange().step(b""))
    assert read_token(message.token).claims["sub"] == "alice"
    assert message.extensions == {"traceId": "7"}


def test_a_token_is_read_from_a_file_that_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "token"
    path.write_text(unsecured())
    properties = {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": f"{BEARER};", URL: f"file://{path}"}
    with pytest.raises(ConfigurationError, match=f"{URL}: it must be allowed"):
        read_credentials(properties)
    monkeypatch.setenv("KAFKA_OPTS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file://{path}")
    exchange = read_credentials(properties).new_exchange()
    assert ClientFirst.read(exchange.step(b"")).token == unsecured()


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({}, "says nothing of a token"),
        ({"sasl.login.callback.handler.class": "org.example.Handler"}, "org.example.Handler"),
        ({"sasl.oauthbearer.assertion.file": "/hunter2"}, "sasl.oauthbearer.assertion.file: tokens by assertions"),
        ({URL: "http://localhost/token"}, "http hides nothing"),
        ({URL: "https://localhost/token"}, "must be allowed"),
        ({URL: "file:///token", "sasl.oauthbearer.sub.claim.name": " "}, "must be allowed"),
        ({"sasl.jaas.config": LINE}, "the login module of OAUTHBEARER is"),
    ],
)
def test_what_is_wrong_of_a_token_is_said_in_one_line(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_credentials({"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": f"{BEARER};"} | properties)
    assert reason in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_broker_that_asks_for_no_password_says_so(call: Callable[..., Outcome], tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={LINE}\n")
    refused = call(f"topics --list --command-config {properties}")
    assert (refused.code, refused.out) == (1, "")
    assert "asks for no authentication there: the listener has no SASL" in refused.err


def write_jaas_file(path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    monkeypatch.setenv("KAFKA_OPTS", f"-Djava.security.auth.login.config={path}")
    return path


def test_without_a_line_the_user_is_that_of_the_jaas_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"KafkaServer {{ {SCRAM} required username=node password=hunter2; }};\nKafkaClient {{ {LINE} }};"
    write_jaas_file(tmp_path / "jaas.conf", text, monkeypatch)
    credentials = read_credentials({"sasl.mechanism": "SCRAM-SHA-256"})
    assert credentials.new_exchange().step(b"").startswith(b"n,,n=alice,r=")
    other = read_credentials({"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": LINE.replace("alice", "bob")})
    assert other.new_exchange().step(b"").startswith(b"n,,n=bob,r="), "a line wins"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"KafkaServer {{ {LINE} }};", "sasl.jaas.config is missing, and FILE has no section KafkaClient"),
        (f"KafkaClient {{ {LINE} }};", "section KafkaClient of FILE lacks the login module of PLAIN"),
        (f"KafkaClient {{ {LINE} }}", "java.security.auth.login.config: FILE, line 1: ';' is expected"),
    ],
)
def test_what_a_jaas_file_lacks_is_said_in_one_line_without_a_secret(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_jaas_file(tmp_path / "jaas.conf", text, monkeypatch)
    with pytest.raises(ConfigurationError) as refused:
        read_credentials({"sasl.mechanism": "PLAIN"})
    assert reason.replace("FILE", str(path)) in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_tokens_are_made_by_the_jaas_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_jaas_file(
        tmp_path / "jaas.conf", f"KafkaClient {{ {BEARER}\n unsecuredLoginStringClaim_sub=alice; }};", monkeypatch
    )
    message = ClientFirst.read(read_credentials({"sasl.mechanism": "OAUTHBEARER"}).new_exchange().step(b""))
    assert read_token(message.token).claims["sub"] == "alice"
