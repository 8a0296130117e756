"""Stock clients with each mechanism: who is let in, and what the others are told."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer
from kafka.errors import KafkaError

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.tools import Tool, run_tool

from .modules import PLAIN_MODULE, SCRAM_MODULE
from .secured import PASSWORDS, Secured

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LOG_INS = {
    "right": ("alice", PASSWORDS["alice"]),
    "wrong password": ("alice", "wrong"),
    "unknown user": ("mallory", "x"),
}
SERVED = "served"

LogIn = Callable[[Secured, str, str, str], Any]
CLIENTS: dict[str, Any] = {}


def client(function: LogIn) -> LogIn:
    CLIENTS[function.__name__] = function
    return function


@client
def librdkafka(secured: Secured, mechanism: str, name: str, password: str) -> Any:
    errors: list[str] = []
    admin = AdminClient(
        {
            "bootstrap.servers": secured.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": name,
            "sasl.password": password,
            "error_cb": lambda error: errors.append(error.str()),
            "log_level": 0,
        }
    )
    try:
        return SERVED if admin.list_topics(timeout=2 if name != "alice" or password == "wrong" else 30) else "nothing"
    except KafkaException:
        admin.poll(0)
        return _without_place(next(each for each in errors if "SASL" in each))


@client
def kcat(secured: Secured, mechanism: str, name: str, password: str) -> Any:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
    }
    options = [part for key, value in settings.items() for part in ("-X", f"{key}={value}")]
    command = ["kcat", "-b", secured.bootstrap, "-L", "-m", "3", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 0:
        return SERVED
    return _without_place(next(line for line in done.stderr.splitlines() if "SASL" in line))


def _without_place(text: str) -> str:
    found = re.search(r"SASL .*?(?= \(after|$)", text)
    assert found is not None, text
    return found[0]


@client
def kafka_python(secured: Secured, mechanism: str, name: str, password: str) -> Any:
    try:
        consumer = KafkaConsumer(
            bootstrap_servers=secured.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username=name,
            sasl_plain_password=password,
            bootstrap_timeout_ms=30_000 if LOG_INS["right"] == (name, password) else 2_000,
        )
    except KafkaError as error:
        return type(error).__name__
    try:
        consumer.topics()
    finally:
        consumer.close()
    return SERVED


@client
def aiokafka(secured: Secured, mechanism: str, name: str, password: str) -> Any:
    async def run() -> Any:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=secured.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username=name,
            sasl_plain_password=password,
        )
        try:
            await consumer.start()
            await consumer.topics()
        except AioKafkaError as error:
            return type(error).__name__
        finally:
            await consumer.stop()
        return SERVED

    return asyncio.run(run())


@pytest.mark.kcat
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("log_in", CLIENTS)
def test_who_knows_the_password_is_served(secured: Secured, answers: TestAnswers, log_in: str, mechanism: str) -> None:
    for case, (name, password) in LOG_INS.items():
        outcome = CLIENTS[log_in](secured, mechanism, name, password)
        answers.same(case, outcome)
        if log_in == "kcat" and mechanism != "PLAIN":
            continue  # librdkafka before 2.8 repeats a wrong nonce, which Kafka refuses since CVE-2024-56128
        assert (outcome == SERVED) == (case == "right")


@pytest.mark.java
def test_kafkas_own_client_says_what_it_was_told(secured: Secured, answers: TestAnswers, tmp_path: Path) -> None:
    def listing(mechanism: str, name: str, password: str) -> Any:
        module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
        properties = tmp_path / "client.properties"
        properties.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nrequest.timeout.ms=10000\n"
            f'sasl.jaas.config={module} required username="{name}" password="{password}";\n'
        )
        options = ("--bootstrap-server", secured.bootstrap, "--command-config", str(properties), "--list")
        done = run_tool(Tool.TOPICS, *options, allowed=(0, 1), timeout_s=120)
        if done.returncode == 0:
            return SERVED
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "Authentication failed" in line]
        assert lines, str(done)
        return re.sub(r"^.*?(Authentication failed.*)$", r"\1", lines[0])

    for mechanism in MECHANISMS:
        for case, (name, password) in LOG_INS.items():
            answers.same(f"{mechanism}, {case}", listing(mechanism, name, password))


@pytest.mark.java
def test_kafkas_own_client_authenticates_again_and_goes_on(secured: Secured, tmp_path: Path) -> None:
    """The sessions of that listener last three seconds: the producer goes through some of them."""
    properties = tmp_path / "client.properties"
    host, port = secured.expiring
    properties.write_text(
        f"bootstrap.servers={host}:{port}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nacks=all\n"
        f'sasl.jaas.config={SCRAM_MODULE} required username="alice" password="{PASSWORDS["alice"]}";\nretries=0\n'
    )
    options = ("--topic", "sessions", "--num-records", "4000", "--record-size", "10", "--throughput", "400")
    done = run_tool(Tool.PRODUCER_PERFORMANCE, *options, "--command-config", str(properties), timeout_s=120)
    assert "4000 records sent" in done.stdout, str(done)
