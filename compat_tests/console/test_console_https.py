"""The console over HTTPS, and what a start says of consoles that other machines reach."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from compat_tests.brokers import pykbroker_command
from compat_tests.certificates import Authority
from compat_tests.key_stores import write_pem, write_pem_trust

from .console_broker import USERS, ConsoleBrokerWithUsers, start_and_stop

SASL = [
    "listeners=SASL_PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "security.inter.broker.protocol=SASL_PLAINTEXT",
    "sasl.enabled.mechanisms=PLAIN",
    "sasl.mechanism.inter.broker.protocol=PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config="
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="x" user_admin="x";',
]
WITHOUT_TLS = "the console is open to other machines without TLS"
WITHOUT_USERS = "the broker has no users that log in"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ConsoleBrokerWithUsers, ssl.SSLContext]]:
    directory = tmp_path_factory.mktemp("https")
    authority = Authority.root()
    properties = {
        "console.security.protocol": "SSL",
        "console.ssl.keystore.type": "PEM",
        "console.ssl.keystore.location": str(write_pem(directory / "server.pem", authority.server())),
    }
    broker = ConsoleBrokerWithUsers(directory / "broker", properties)
    broker.start()
    yield broker, ssl.create_default_context(cafile=str(write_pem_trust(directory / "ca.pem", authority)))
    broker.close()


def test_a_user_logs_in_over_https_and_the_cookie_goes_by_https_alone(
    console: tuple[ConsoleBrokerWithUsers, ssl.SSLContext],
) -> None:
    broker, trusting = console
    url = urlsplit(broker.url)
    assert url.scheme == "https"
    headers = {"Content-Type": "application/json", "X-Console-Request": "1", "Origin": f"https://{url.netloc}"}
    with closing(http.client.HTTPSConnection(url.netloc, timeout=60, context=trusting)) as connection:
        body = json.dumps({"user": "admin", "password": USERS["admin"]})
        connection.request("POST", "/api/session", body, headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        cookie = answer.headers["set-cookie"].lower()
        for attribute in ("secure", "httponly", "samesite=strict"):
            assert f"; {attribute}" in cookie
        connection.request("GET", "/api/topics", headers={"Cookie": answer.headers["set-cookie"].partition(";")[0]})
        assert connection.getresponse().status == 200


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ([], []),
        (["console.listener=0.0.0.0:0", "console.read.only=true"], [WITHOUT_USERS, WITHOUT_TLS]),
        (["console.listener=0.0.0.0:0", "console.allow.changes.without.login=true"], [WITHOUT_USERS, WITHOUT_TLS]),
        (["console.listener=0.0.0.0:0", *SASL], [WITHOUT_TLS]),
        (["console.listener=0.0.0.0:0", "console.security.protocol=SSL", "STORE", *SASL], []),
    ],
    ids=["loopback", "read-only", "for everybody", "with users", "with users over HTTPS"],
)
def test_a_console_that_other_machines_can_read_is_a_warning(
    tmp_path: Path, overrides: list[str], said: list[str]
) -> None:
    store = write_pem(tmp_path / "server.pem", Authority.root().server())
    given = [each.replace("STORE", f"ssl.keystore.location={store}") for each in overrides]
    code, lines = start_and_stop(tmp_path, [*given, "ssl.keystore.type=PEM"])
    assert code == 0, lines
    log = "".join(lines)
    for each in (WITHOUT_USERS, WITHOUT_TLS):
        assert (each in log) == (each in said), log


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("console.security.protocol=TLS", "console.security.protocol"),
        ("console.security.protocol=SSL", "console.ssl.keystore.location"),
        ("metrics.listener=127.0.0.1:0 metrics.security.protocol=SSL", "metrics.ssl.keystore.location"),
    ],
)
def test_https_that_cannot_be_ends_the_start_in_one_line(tmp_path: Path, override: str, said: str) -> None:
    flags = [part for each in override.split() for part in ("--override", each)]
    command = pykbroker_command("start", "--data-dir", str(tmp_path / "data"), "--port", "0", *flags)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert said in line
