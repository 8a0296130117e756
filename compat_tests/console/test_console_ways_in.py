"""Ways into the console: by what the broker's listener takes, or a line that says what the console needs there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.certificates import Authority
from compat_tests.key_stores import write_pem, write_pem_trust
from compat_tests.ports import take_ports
from compat_tests.sasl.oauthbearer.bearers import MODULE, unsecured

from .console_broker import USERS, ConsoleBroker, ConsoleBrokerWithUsers, ask
from .page import Page

pytestmark = pytest.mark.chromium


class BearerBroker(ConsoleBroker):
    """Tokens without a signature are taken."""

    def base_properties(self) -> dict[str, str]:
        line = f'{MODULE} required unsecuredLoginStringClaim_sub="broker";'
        return super().base_properties() | {
            "listeners": f"SASL_PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self.controller_port}",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": line,
        }


def certificate_broker(directory: Path, authority: Authority, properties: dict[str, str]) -> ConsoleBroker:
    """At the listener that the console chooses, clients with a certificate alone are taken."""
    directory.mkdir()
    broker = ConsoleBroker(directory / "broker")
    broker.properties |= {
        "listeners": f"{broker.properties['listeners']},SSL://127.0.0.1:{take_ports(1)[0]}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(write_pem(directory / "server.pem", authority.server())),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(write_pem_trust(directory / "trust.pem", authority)),
        "ssl.client.auth": "required",
        **properties,
    }
    return broker


@pytest.fixture(scope="module")
def bearer_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleBroker]:
    broker = BearerBroker(tmp_path_factory.mktemp("bearer") / "broker")
    broker.start()
    yield broker
    broker.close()


def test_a_token_logs_in_where_the_broker_takes_tokens(
    bearer_console: ConsoleBroker, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    page = page_of(bearer_console)
    page.open("/topics").heading("Log in")
    assert not page.has_button("Log in")
    assert page.barriers() == []
    for text, said in (
        ("no token", "INVALID_REQUEST: a token has letters, digits and"),
        ("a.b.c", "INVALID_REQUEST: this is no token: "),
        (unsecured(-60), "SASL_AUTHENTICATION_FAILED: the broker does not take this token"),
    ):
        page.fill("Token", text)
        page.click("Log in with the token")
        page.until(lambda said=said: page.failure().startswith(said), said)  # type: ignore[misc]
    page.fill("Token", unsecured())
    page.click("Log in with the token")
    page.heading("Topics")
    page.sees("alice")
    page.click("Log out")
    page.heading("Log in")


@pytest.mark.parametrize(
    ("body", "status", "name"),
    [
        ({"token": ""}, 400, "INVALID_REQUEST"),
        ({"token": 7}, 400, "INVALID_REQUEST"),
        ({"token": "a\x01auth=Bearer b"}, 400, "INVALID_REQUEST"),
        ({"token": "x" * 70_000}, 413, "REQUEST_TOO_LARGE"),
        ({"token": unsecured(sub=["alice"])}, 401, "SASL_AUTHENTICATION_FAILED"),
        ({"user": "alice", "password": "alice"}, 400, "INVALID_REQUEST"),
        ({}, 400, "INVALID_REQUEST"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_bad_log_in_is_one_line(bearer_console: ConsoleBroker, body: object, status: int, name: str) -> None:
    answer = ask(f"{bearer_console.url}/api/session", "POST", body)
    assert (answer.status, answer.error) == (status, name), answer.body


def test_a_broker_without_tokens_says_so(console_with_users: ConsoleBroker) -> None:
    assert ask(f"{console_with_users.url}/api/session").json["logs_in_by"] == ["password"]
    answer = ask(f"{console_with_users.url}/api/session", "POST", {"token": unsecured()})
    assert (answer.status, answer.error) == (400, "INVALID_REQUEST")
    assert "OAUTHBEARER" in answer.json["error"]["message"]


def test_both_ways_are_there_where_the_broker_takes_both(tmp_path: Path) -> None:
    broker = ConsoleBrokerWithUsers(tmp_path / "broker")
    line = f'{MODULE} required unsecuredLoginStringClaim_sub="broker";'
    broker.properties |= {
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": line,
    }
    broker.start()
    try:
        assert ask(f"{broker.url}/api/session").json["logs_in_by"] == ["password", "token"]
        for body in ({"user": "alice", "password": USERS["alice"]}, {"token": unsecured()}):
            assert ask(f"{broker.url}/api/session", "POST", body).status == 200
    finally:
        broker.close()


def test_a_broker_for_clients_with_certificates_says_what_the_console_needs(
    tmp_path: Path, page_of: Callable[[ConsoleBroker], Page]
) -> None:
    authority = Authority.root()
    broker = certificate_broker(tmp_path / "without", authority, {})
    broker.start()
    said = "the broker's listener SSL takes clients with a certificate alone, and the console has none"
    try:
        page = page_of(broker)
        page.open("/topics")
        assert said in page.failure()
        assert "console.client.ssl.keystore.location" in page.failure()
        assert said in broker.log_text()
        page.driver.get("about:blank")
    finally:
        broker.close()
    own = write_pem(tmp_path / "console.pem", authority.client("CN=console,O=Example"))
    properties = {"console.client.ssl.keystore.type": "PEM", "console.client.ssl.keystore.location": str(own)}
    with_certificate = certificate_broker(tmp_path / "with", authority, properties)
    with_certificate.start()
    try:
        assert ask(f"{with_certificate.url}/api/topics").status == 200
        assert said not in with_certificate.log_text()
    finally:
        with_certificate.close()
