"""Stock clients with right and wrong tokens, with and without TLS: who is let in, and what the others are told."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.tools import Tool, run_tool, tool_command
from compat_tests.brokers import pykbroker_command
from pykbroker.security.sasl.oauthbearer.allowed_urls import PROPERTY

from .bearers import LISTENERS, MODULE, PACKAGE, REFUSED, Bearers, token, tokens

SERVED = "served"
CASES = ("right", *REFUSED)
LogIn = Callable[[Bearers, str, str], Any]
CLIENTS: dict[str, LogIn] = {}


def client(function: LogIn) -> LogIn:
    CLIENTS[function.__name__] = function
    return function


def librdkafka_options(bearers: Bearers, listener: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bearers.bootstrap(listener),
        "security.protocol": LISTENERS[listener],
        "sasl.mechanism": "OAUTHBEARER",
        "ssl.ca.location": str(bearers.trusted),
        "log_level": 0,
    }


@client
def librdkafka(bearers: Bearers, listener: str, text: str) -> Any:
    errors: list[str] = []
    options: dict[str, Any] = librdkafka_options(bearers, listener) | {
        "oauth_cb": lambda _: (text, time.time() + 600, "alice", {"traceId": "1"}),
        "error_cb": lambda error: errors.append(error.str()),
    }
    admin = AdminClient(options)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            admin.list_topics(timeout=0.5)
            return SERVED
        except KafkaException:
            admin.poll(0)
        said = [each for each in errors if "SASL" in each]
        if said:
            return re.sub(r".*?(SASL .*?)(?: \(after.*|$)", r"\1", said[0])
    return errors


class Token(AbstractTokenProvider):
    def __init__(self, text: str) -> None:
        self._text = text

    def token(self) -> str:
        return self._text


@client
def kafka_python(bearers: Bearers, listener: str, text: str) -> Any:
    try:
        consumer = KafkaConsumer(
            bootstrap_servers=bearers.bootstrap(listener),
            security_protocol=LISTENERS[listener],
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Token(text),
            ssl_cafile=str(bearers.trusted),
            bootstrap_timeout_ms=3_000,
        )
    except KafkaError as error:
        return type(error).__name__
    try:
        consumer.topics()
    finally:
        consumer.close()
    return SERVED


@client
def aiokafka(bearers: Bearers, listener: str, text: str) -> Any:
    module = "compat_tests.sasl.oauthbearer.aiokafka_attempt"
    command = [sys.executable, "-m", module, bearers.bootstrap(listener), LISTENERS[listener], str(bearers.trusted)]
    return subprocess.run([*command, text], capture_output=True, text=True, timeout=60, check=True).stdout.strip()


@pytest.mark.parametrize("listener", ["SIGNED", "ENCRYPTED"])
@pytest.mark.parametrize("log_in", CLIENTS)
def test_who_has_a_good_token_is_served(bearers: Bearers, answers: TestAnswers, log_in: str, listener: str) -> None:
    for case in CASES:
        outcome = CLIENTS[log_in](bearers, listener, tokens(case))
        answers.same(case, outcome)
        assert (outcome == SERVED) == (case == "right"), outcome


def client_properties(bearers: Bearers, listener: str, text: str, directory: Path) -> tuple[Path, str]:
    """Settings of a Java client or a command whose token stands in a file, and the address of the file."""
    (directory / "token").write_text(text)
    url = f"file://{directory / 'token'}"
    properties = directory / "client.properties"
    properties.write_text(
        f"security.protocol={LISTENERS[listener]}\nsasl.mechanism=OAUTHBEARER\nrequest.timeout.ms=10000\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={bearers.trusted}\n"
        f"sasl.login.callback.handler.class={PACKAGE}.OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={url}\nsasl.jaas.config={MODULE} required;\n"
    )
    return properties, url


@pytest.mark.java
@pytest.mark.parametrize("listener", ["SIGNED", "ENCRYPTED"])
def test_kafkas_own_client_says_what_it_was_told(
    bearers: Bearers, answers: TestAnswers, listener: str, tmp_path: Path
) -> None:
    for case in CASES:
        properties, url = client_properties(bearers, listener, tokens(case), tmp_path)
        java, *rest = tool_command(Tool.TOPICS, "--bootstrap-server", bearers.bootstrap(listener), "--list")
        command = [java, f"-D{PROPERTY}={url}", *rest, "--command-config", str(properties)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        told = re.search(r"failed authentication due to: (.*) \(org", done.stdout + done.stderr)
        outcome = SERVED if done.returncode == 0 else told[1] if told else str(done)
        answers.same(case, outcome)
        assert (outcome == SERVED) == (case == "right"), outcome


@pytest.mark.java
@pytest.mark.kcat
def test_clients_that_make_their_tokens_are_served_where_nobody_asks_for_a_signature(
    bearers: Bearers, answers: TestAnswers, tmp_path: Path
) -> None:
    bootstrap = bearers.bootstrap("UNSECURED")
    for scope in ("read", "write"):
        options = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": f"principal=alice scope={scope}",
        }
        settings = [part for key, value in options.items() for part in ("-X", f"{key}={value}")]
        command = ["kcat", "-b", bootstrap, "-L", "-m", "5", *settings]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        said = [line for line in done.stderr.splitlines() if "SASL" in line]
        outcome = SERVED if done.returncode == 0 else re.sub(r".*?(SASL .*?)(?: \(after.*|$)", r"\1", said[0])
        answers.same(f"kcat, {scope}", outcome)

        properties = tmp_path / "client.properties"
        properties.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nrequest.timeout.ms=10000\n"
            f'sasl.jaas.config={MODULE} required unsecuredLoginStringClaim_sub="alice" '
            f'unsecuredLoginListClaim_scope="|x|{scope}" unsecuredLoginExtension_traceId="7";\n'
        )
        arguments = ("--bootstrap-server", bootstrap, "--command-config", str(properties), "--list")
        listed = run_tool(Tool.TOPICS, *arguments, allowed=(0, 1), timeout_s=120)
        said = [line for line in (listed.stdout + listed.stderr).splitlines() if "insufficient_scope" in line]
        outcome = SERVED if listed.returncode == 0 else re.sub(r"^.*?Exception: ", "", said[0])
        answers.same(f"Java, {scope}", outcome)

        command = pykbroker_command("topics", *arguments)
        own = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        answers.same(f"pykbroker's command, {scope}", (own.returncode, own.stderr.replace(bootstrap, "BROKER")))


@pytest.mark.java
def test_kafkas_own_producer_goes_on_when_its_token_expires(bearers: Bearers, tmp_path: Path) -> None:
    """Its tokens live for six seconds: it authenticates again on the connections that it has."""
    properties = tmp_path / "client.properties"
    properties.write_text(
        f"bootstrap.servers={bearers.bootstrap('UNSECURED')}\nsecurity.protocol=SASL_PLAINTEXT\nacks=all\nretries=0\n"
        "sasl.mechanism=OAUTHBEARER\nsasl.login.refresh.min.period.seconds=0\nsasl.login.refresh.buffer.seconds=0\n"
        f'sasl.jaas.config={MODULE} required unsecuredLoginStringClaim_sub="alice" '
        'unsecuredLoginStringClaim_scope="read" unsecuredLoginLifetimeSeconds="6";\n'
    )
    options = ("--topic", "token-sessions", "--num-records", "6000", "--record-size", "10", "--throughput", "400")
    done = run_tool(Tool.PRODUCER_PERFORMANCE, *options, "--command-config", str(properties), timeout_s=120)
    assert "6000 records sent" in done.stdout, str(done)


def test_librdkafka_goes_on_when_its_token_expires(bearers: Bearers) -> None:
    asked: list[float] = []

    def new_token(_: str) -> tuple[str, float]:
        asked.append(time.time())
        return token(4), time.time() + 4

    producer = Producer(librdkafka_options(bearers, "SIGNED") | {"oauth_cb": new_token, "acks": "all", "linger.ms": 0})
    failed: list[str] = []
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        producer.produce("token-sessions-2", b"x", on_delivery=lambda error, _: error and failed.append(str(error)))
        producer.flush(30)
        time.sleep(0.1)
    assert failed == []
    assert len(asked) >= 3


def test_this_brokers_commands_show_a_token_from_a_file(bearers: Bearers, answers: TestAnswers, tmp_path: Path) -> None:
    for listener in ("SIGNED", "ENCRYPTED"):
        for case in CASES:
            properties, url = client_properties(bearers, listener, tokens(case), tmp_path)
            command = pykbroker_command("topics", "--bootstrap-server", bearers.bootstrap(listener), "--list")
            done = subprocess.run(
                ["env", f"KAFKA_OPTS=-D{PROPERTY}={url}", *command, "--command-config", str(properties)],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            told = re.sub(r"localhost:\d+", "BROKER", done.stderr.strip())
            answers.same(f"{listener}, {case}", (done.returncode, told))
            assert (done.returncode == 0) == (case == "right"), str(done)


def test_this_brokers_commands_ask_a_token_endpoint(bearers: Bearers, tmp_path: Path) -> None:
    bearers.issuer.clients = {"ops": "hunter2"}
    bearers.issuer.token = lambda name: token(sub=name)
    properties = tmp_path / "client.properties"

    def listing(secret: str) -> subprocess.CompletedProcess[str]:
        properties.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            f"sasl.oauthbearer.token.endpoint.url={bearers.issuer.token_url}\n"
            "sasl.oauthbearer.client.credentials.client.id=ops\n"
            f"sasl.oauthbearer.client.credentials.client.secret={secret}\nsasl.oauthbearer.scope=read\n"
            f'sasl.jaas.config={MODULE} required ssl.truststore.type="PEM" '
            f'ssl.truststore.location="{bearers.trusted}";\n'
        )
        command = pykbroker_command("topics", "--bootstrap-server", bearers.bootstrap("SIGNED"), "--list")
        return subprocess.run(
            [
                "env",
                f"KAFKA_OPTS=-D{PROPERTY}={bearers.issuer.token_url}",
                *command,
                "--command-config",
                str(properties),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    done = listing("hunter2")
    assert done.returncode == 0, str(done)
    refused = listing("hunter3")
    assert refused.returncode == 1
    assert "status 401, error 'invalid_client'" in refused.stderr
    assert "hunter" not in refused.stderr
