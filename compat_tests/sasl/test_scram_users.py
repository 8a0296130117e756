"""SCRAM users in the metadata log: both requests, field by field, and Kafka's tools, on both brokers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

from .modules import SCRAM_MODULE
from .secured import PASSWORDS, Secured

SHA_256, SHA_512 = 1, 2


def upsertion(
    name: str, mechanism: int = SHA_256, iterations: int = 4096, **changes: bytes
) -> ScramCredentialUpsertion:
    values = {"salt": b"salt", "salted_password": b"salted", **changes}
    return ScramCredentialUpsertion(name=name, mechanism=mechanism, iterations=iterations, **values)


def deletion(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(address: tuple[str, int], *changes: ScramCredentialDeletion | ScramCredentialUpsertion) -> Any:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    with Wire(address) as wire:
        answer = wire.call(request, 0)
    assert isinstance(answer, AlterUserScramCredentialsResponse)
    return sorted((each.user, each.error_code, each.error_message) for each in answer.results)


def describe(address: tuple[str, int], *names: str) -> Any:
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=each) for each in names])
    with Wire(address) as wire:
        answer = wire.call(request, 0)
    assert isinstance(answer, DescribeUserScramCredentialsResponse)
    rows = [
        (
            each.user,
            each.error_code,
            each.error_message,
            sorted((info.mechanism, info.iterations) for info in each.credential_infos),
        )
        for each in answer.results
    ]
    return [answer.error_code, answer.error_message, sorted(rows)]


def test_users_are_set_described_and_deleted(secured: Secured, answers: TestAnswers) -> None:
    address = secured.broker.address
    answers.same("set", alter(address, upsertion("u1"), upsertion("u2", SHA_512, 16384)))
    answers.same("set another", alter(address, upsertion("u1", SHA_512, 8192)))
    answers.same("described", describe(address, "u1", "u2"))
    answers.same("not there, and twice", describe(address, "u1", "u3", "u2", "u2"))
    answers.same(
        "on a controller", alter(("127.0.0.1", secured.broker.controller_port), upsertion("u1", SHA_256, 9000))
    )
    answers.same("changed", describe(address, "u1"))
    answers.same("deleted", alter(address, deletion("u1"), deletion("u2", SHA_512)))
    answers.same("one is left", describe(address, "u1", "u2"))
    answers.same("the last", alter(address, deletion("u1", SHA_512)))
    answers.same("none is left", describe(address, "u1"))


def test_what_is_refused_is_refused_in_kafkas_words(secured: Secured, answers: TestAnswers) -> None:
    address = secured.broker.address
    alter(address, upsertion("there"))
    asked = {
        "nothing": [],
        "no name": [upsertion("")],
        "no name to delete": [deletion("")],
        "unknown mechanism": [upsertion("a", 0)],
        "a mechanism to come": [upsertion("a", 3)],
        "unknown mechanism to delete": [deletion("there", 0)],
        "too few iterations": [upsertion("a", SHA_256, 4095)],
        "too few iterations of the other": [upsertion("a", SHA_512, 4095)],
        "too many iterations": [upsertion("a", SHA_512, 16385)],
        "a negative number": [upsertion("a", SHA_256, -1)],
        "nobody to delete": [deletion("nobody")],
        "another mechanism to delete": [deletion("there", SHA_512)],
        "set twice": [upsertion("a"), upsertion("a", SHA_512)],
        "deleted twice": [deletion("there"), deletion("there")],
        "deleted and set": [deletion("there"), upsertion("there", SHA_512)],
        "wrong, and once more": [deletion("nobody"), upsertion("nobody")],
        "three times": [upsertion("a"), upsertion("a"), upsertion("a")],
        "one is wrong": [upsertion("", SHA_256), deletion("nobody"), upsertion("right")],
        "no salt": [upsertion("no salt", salt=b"")],
        "no password": [upsertion("no password", salted_password=b"")],
        "a short password": [upsertion("short", salted_password=b"x")],
    }
    answers.all_same({name: alter(address, *changes) for name, changes in asked.items()})
    users = ("a", "there", "nobody", "right", "no salt", "no password", "short")
    answers.same("afterwards", [describe(address, each) for each in users])


@pytest.mark.java
def test_kafka_configs_sets_and_deletes_users(secured: Secured, answers: TestAnswers, tmp_path: Path) -> None:
    def configs(*arguments: str) -> list[str]:
        done = run_tool(
            Tool.CONFIGS, "--bootstrap-server", secured.broker.bootstrap, *arguments, allowed=(0, 1), timeout_s=60
        )
        shown = [re.sub(r"\s+", " ", line) for line in [*done.lines, *done.stderr.splitlines()]]
        return [line for line in shown if not line.startswith((" at ", "Error while executing"))]

    entity = ("--entity-type", "users", "--entity-name", "carol")
    credentials = "SCRAM-SHA-256=[iterations=8192,password=carol-secret]", "SCRAM-SHA-512=[password=carol-secret]"
    answers.same("both at once", configs("--alter", *entity, "--add-config", ",".join(credentials)))
    for each in credentials:
        answers.same(f"added {each}", configs("--alter", *entity, "--add-config", each))
    answers.same("described", describe(secured.broker.address, "carol"))
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={SCRAM_MODULE} required username="carol" password="carol-secret";\n'
    )
    listing = ("--bootstrap-server", secured.bootstrap, "--command-config", str(properties), "--list")
    until(lambda: run_tool(Tool.TOPICS, *listing, allowed=(0, 1)).returncode == 0, "the listener knows the user")
    answers.same(
        "too few iterations", configs("--alter", *entity, "--add-config", "SCRAM-SHA-256=[iterations=1,password=x]")
    )
    for each in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        answers.same(f"deleted {each}", configs("--alter", *entity, "--delete-config", each))
    answers.same("described again", describe(secured.broker.address, "carol"))


def test_a_password_that_is_set_is_the_one_that_counts(secured: Secured) -> None:
    """Through another client's computation of the salted password."""
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    def admin(**properties: str) -> AdminClient:
        common = {"bootstrap.servers": secured.bootstrap, "security.protocol": "SASL_PLAINTEXT"}
        return AdminClient({**common, **properties})

    root = admin(**{"sasl.mechanism": "PLAIN", "sasl.username": "admin", "sasl.password": PASSWORDS["admin"]})
    for mechanism, name in (
        (ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-256"),
        (ScramMechanism.SCRAM_SHA_512, "SCRAM-SHA-512"),
    ):
        credential = ScramCredentialInfo(mechanism, 5000)
        change = UserScramCredentialUpsertion("dave", credential, b"dave-secret", b"dave-salt")
        root.alter_user_scram_credentials([change])["dave"].result()
        dave = {"sasl.mechanism": name, "sasl.username": "dave", "sasl.password": "dave-secret"}
        assert admin(**dave).list_topics(timeout=20).brokers
