"""A log directory with SCRAM users in it changes hands: whoever runs on it lets the same users in."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.apache_kafka.broker import CLUSTER_ID, ApacheKafka
from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.brokers import BrokerProcess, Pykbroker, pykbroker_command
from compat_tests.conftest import assert_all_went_well, watch_log
from compat_tests.listening import until_it_listens
from compat_tests.wire import Wire
from pykbroker.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
)
from pykbroker.protocol.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from pykbroker.security.sasl.scram_client import ScramClient, ScramPassword
from pykbroker.security.sasl.scram_credential import MECHANISMS

from ..waiting import until
from .secured import Secured, secure

pytestmark = pytest.mark.java

Format = Callable[[BrokerProcess, list[str]], None]


def format_with_kafka(broker: BrokerProcess, options: list[str]) -> None:
    run_tool(Tool.STORAGE, "format", "-t", CLUSTER_ID, "-c", str(broker.properties_file), *options)


def format_with_pykbroker(broker: BrokerProcess, options: list[str]) -> None:
    command = pykbroker_command("format", "-t", CLUSTER_ID, "-c", str(broker.properties_file), *options)
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def ours(directory: Path, data: Path) -> BrokerProcess:
    broker = Pykbroker(directory, {"log.dirs": str(data), "node.id": "1", "process.roles": "broker,controller"})
    broker.properties["controller.quorum.voters"] = f"1@127.0.0.1:{broker.controller_port}"
    return broker


def kafkas(directory: Path, data: Path) -> BrokerProcess:
    return ApacheKafka(directory, {"log.dirs": str(data)}, is_formatted=True)


def logs_in(secured: Secured, mechanism: str, name: str, password: str) -> bool:
    client, challenge = ScramClient(MECHANISMS[mechanism], ScramPassword(name, password), "nonce"), b""
    with Wire(secured.sasl) as wire:
        wire.call(SaslHandshakeRequest(mechanism=mechanism), 1)
        while not client.is_complete:
            if response := client.step(challenge):
                answer = wire.call(SaslAuthenticateRequest(auth_bytes=response), 2)
                assert isinstance(answer, SaslAuthenticateResponse)
                if answer.error_code:
                    return False
                challenge = answer.auth_bytes
    return True


def alter(broker: BrokerProcess, request: AlterUserScramCredentialsRequest) -> None:
    with Wire(broker.address) as wire:
        answer = wire.call(request, 0)
    assert isinstance(answer, AlterUserScramCredentialsResponse)
    assert [each.error_code for each in answer.results] == [0]


def add(broker: BrokerProcess, name: str, password: str) -> None:
    mechanism = MECHANISMS["SCRAM-SHA-512"]
    salted = mechanism.salted_password(password, b"salt", 8192)
    change = ScramCredentialUpsertion(name=name, mechanism=2, iterations=8192, salt=b"salt", salted_password=salted)
    alter(broker, AlterUserScramCredentialsRequest(upsertions=[change]))


def remove(broker: BrokerProcess, name: str) -> None:
    alter(broker, AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name=name, mechanism=2)]))


@pytest.mark.parametrize(
    ("formats", "turns"),
    [(format_with_pykbroker, (kafkas, ours, kafkas)), (format_with_kafka, (ours, kafkas, ours))],
    ids=["formatted by pykbroker", "formatted by Kafka"],
)
def test_users_stay_with_their_directory(
    formats: Format,
    turns: tuple[Callable[[Path, Path], BrokerProcess], ...],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    users = {("SCRAM-SHA-256", "first"): "first-secret", ("SCRAM-SHA-512", "second"): "second=secret"}
    options = [part for (how, name), text in users.items() for part in ("-S", f'{how}=[name={name},password="{text}"]')]
    for number, make in enumerate(turns):
        broker = make(tmp_path / f"turn-{number}", tmp_path / "data")
        secured = secure(broker)
        broker.set_up()
        if not number:
            formats(broker, options)
        watch_log(request.node, broker)
        broker.start()
        try:
            until_it_listens(secured.sasl)
            for (mechanism, name), password in users.items():
                assert logs_in(secured, mechanism, name, password), name
                assert not logs_in(secured, mechanism, name, "wrong"), name
            added, gone = f"user-{number}", f"user-{number - 1}"
            assert not logs_in(secured, "SCRAM-SHA-512", added, "of this turn")
            add(broker, added, "of this turn")
            until(lambda: logs_in(secured, "SCRAM-SHA-512", added, "of this turn"), "the new user is let in")  # noqa: B023
            users["SCRAM-SHA-512", added] = "of this turn"
            if number:
                remove(broker, gone)
                until(lambda: not logs_in(secured, "SCRAM-SHA-512", gone, "of this turn"), "the user is gone")  # noqa: B023
                del users["SCRAM-SHA-512", gone]
        finally:
            broker.stop()
        assert_all_went_well(broker)


@pytest.mark.parametrize("make", [ApacheKafka, Pykbroker])
def test_a_user_who_came_and_went_takes_nobody_along(make: type[BrokerProcess], tmp_path: Path) -> None:
    """Apache Kafka 4.3.1 reads of both changes when it starts, and knows no user at all then; with other names it does,
    so it depends on the order of a hash table.
    """
    broker = make(tmp_path / "broker")
    secured = secure(broker)
    broker.start()
    try:
        add(broker, "alice", "secret")
        add(broker, "carol", "secret")
        until(lambda: logs_in(secured, "SCRAM-SHA-512", "carol", "secret"), "the users are let in")
        remove(broker, "carol")
        until(lambda: not logs_in(secured, "SCRAM-SHA-512", "carol", "secret"), "the user is gone")
        assert logs_in(secured, "SCRAM-SHA-512", "alice", "secret")
        broker.stop()
        broker.start()
        assert logs_in(secured, "SCRAM-SHA-512", "alice", "secret") == (make is Pykbroker)
        assert not logs_in(secured, "SCRAM-SHA-512", "carol", "secret")
    finally:
        broker.stop()
