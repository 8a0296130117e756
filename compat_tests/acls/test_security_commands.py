"""`pykbroker acls`, `users` and `quotas` print, on both brokers, what Kafka's tools print there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.brokers import Bootstrap, Broker
from compat_tests.conftest import FreshBroker
from compat_tests.waiting import DEADLINE_S, until

from .test_acls import OPEN_TO_ALL

pytestmark = pytest.mark.java

Lines = list[str]

ADDED = {
    "a producer": "--allow-principal User:alice --producer --topic orders --transactional-id tx",
    "an idempotent producer": "--allow-principal User:carl --producer --idempotent --topic t2",
    "a consumer": "--allow-principal User:bob --consumer --topic orders --group readers",
    "a denial": "--deny-principal User:eve --deny-host 10.0.0.7 --operation All --topic *",
    "a prefix": "--allow-principal User:bob --operation Read --topic or --resource-pattern-type prefixed",
    "a cluster": "--allow-principal User:carl --operation ClusterAction --cluster",
    "a token": "--allow-principal User:carl --operation Describe --delegation-token tok",
    "a user": "--allow-principal User:carl --operation CreateTokens --user-principal User:alice",
    "two principals": "--allow-principal User:a --deny-principal User:b --operation read --operation Write --topic t3",
}
LISTED = (
    "",
    "--topic orders",
    "--topic orders --resource-pattern-type match",
    "--topic orders --topic t2 --resource-pattern-type any",
    "--principal User:bob",
    "--topic nothing",
    "--topic orders --group readers",
)
REMOVED = (
    "--topic orders --allow-principal User:bob --operation Read",
    "--topic or --resource-pattern-type prefixed",
    "--topic orders --allow-principal User:alice --producer",
)
CHANGES = (
    "--user alice --add-config producer_byte_rate=1024,consumer_byte_rate=20480000",
    "--user alice --client app --add-config producer_byte_rate=512",
    "--user alice --client-defaults --add-config request_percentage=50.5",
    "--user-defaults --add-config producer_byte_rate=10000",
    "--client-defaults --add-config producer_byte_rate=10001",
    "--user-defaults --client-defaults --add-config controller_mutation_rate=10",
    "--ip 127.0.0.9 --add-config connection_creation_rate=100",
    "--ip-defaults --add-config connection_creation_rate=200",
    "--user bob --add-config SCRAM-SHA-256=[iterations=8192,password=secret]",
    "--user bob --add-config SCRAM-SHA-512=[password=secret]",
)
DESCRIBED = (
    "--user alice",
    "--entity-type users --entity-name alice",
    "--entity-type users",
    "--user-defaults",
    "--entity-type clients",
    "--client-defaults",
    "--entity-type users --entity-type clients",
    "--entity-type users --entity-name alice --entity-type clients",
    "--entity-type clients --entity-name app --entity-type users --entity-name alice",
    "--entity-type clients --entity-default --entity-type users --entity-name alice",
    "--user-defaults --client-defaults",
    "--entity-type ips",
    "--ip 127.0.0.9",
    "--ip-defaults",
    "--user nobody",
)


class Commands:
    """A tool of Kafka's and a command of ours, asked one question after another of one broker."""

    def __init__(self, broker: Broker, tool: Tool, command: str) -> None:
        self._broker, self._tool, self._command = broker, tool, command

    def kafkas(self, line: str) -> Lines:
        output = run_tool(self._tool, "--bootstrap-server", self._broker.bootstrap, *line.split())
        return _shown(output.stdout)

    def ours(self, line: str) -> Lines:
        return _shown(run_ours(self._broker, f"{self._command} {line}"))


def run_ours(broker: Bootstrap, line: str, stdin: str = "") -> str:
    """What the command prints; it has to succeed."""
    name, *flags = line.split()
    command = [sys.executable, "-m", "pykbroker", name, "--bootstrap-server", broker.bootstrap, *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False, input=stdin)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def _shown(text: str) -> Lines:
    return sorted(line.strip() for line in text.splitlines() if line.strip())


@pytest.fixture
def acls(fresh_broker: FreshBroker) -> Commands:
    return Commands(fresh_broker(OPEN_TO_ALL), Tool.ACLS, "acls")


@pytest.fixture
def configs(fresh_broker: FreshBroker) -> Commands:
    return Commands(fresh_broker(None), Tool.CONFIGS, "configs")


def settled(ask: Callable[[], Lines], *, has: str) -> None:
    until(lambda: has in " ".join(ask()), f"{has} is to be seen")


def test_acls_are_added_listed_and_removed(acls: Commands, answers: TestAnswers) -> None:
    for what, line in ADDED.items():
        added = acls.kafkas(f"--add {line}")
        answers.same(what, added)
        assert acls.ours(f"--add {line}") == added
    settled(lambda: acls.ours("--list --topic t3"), has="User:b")
    for line in LISTED:
        listed = acls.kafkas(f"--list {line}")
        answers.same(f"--list {line}", listed)
        assert acls.ours(f"--list {line}") == listed
    for line in REMOVED:
        assert acls.ours(f"--remove --force {line}") == []
    settled(lambda: ["none" if "WRITE" not in str(acls.ours("--list --topic orders")) else ""], has="none")
    left = acls.kafkas("--list")
    answers.same("left", left)
    assert acls.ours("--list") == left


def test_a_removal_is_asked_for(fresh_broker: FreshBroker, answers: TestAnswers) -> None:
    broker = fresh_broker(OPEN_TO_ALL)
    run_ours(broker, "acls --add --allow-principal User:a --operation Read --operation Write --topic t")
    settled(lambda: _shown(run_ours(broker, "acls --list")), has="WRITE")
    asked = {
        "one": _shown(run_ours(broker, "acls --remove --topic t --allow-principal User:a --operation Read", "n\n")),
        "all": _shown(run_ours(broker, "acls --remove --topic t", "n\n")),
    }
    answers.same("asked", asked)
    answers.same("left", _shown(run_ours(broker, "acls --list")))
    run_ours(broker, "acls --remove --topic t", "y\n")
    until(lambda: run_ours(broker, "acls --list") == "", "all are gone")


def test_quotas_and_users_are_altered_and_described(configs: Commands, answers: TestAnswers) -> None:
    for line in CHANGES:
        altered = configs.ours(f"--alter {line}")
        answers.same(line, altered)
        assert configs.kafkas(f"--alter {line}") == altered
    settled(lambda: configs.ours("--describe --user bob"), has="SCRAM-SHA-512")
    for line in DESCRIBED:
        described = configs.kafkas(f"--describe {line}")
        answers.same(line, described)
        assert configs.ours(f"--describe {line}") == described
    for name, key in (("alice", "producer_byte_rate"), ("bob", "SCRAM-SHA-256")):
        assert configs.ours(f"--alter --user {name} --delete-config {key}") == [
            f"Completed updating config for user {name}."
        ]
    configs.ours("--alter --user zoe --add-config producer_byte_rate=1")
    settled(lambda: configs.ours("--describe --user zoe"), has="producer_byte_rate=1.0")
    answers.same("left", configs.kafkas("--describe --entity-type users"))


def test_commands_of_one_thing_each(fresh_broker: FreshBroker, answers: TestAnswers) -> None:
    broker = fresh_broker(None)
    run_ours(
        broker, "users --alter --user bob --add-config SCRAM-SHA-512=[iterations=5000] --password-file -", "secret\n"
    )
    run_ours(broker, "quotas --alter --user bob --client app --add-config request_percentage=25")
    run_ours(broker, "quotas --alter --user bob --add-config producer_byte_rate=1000")
    settled(lambda: _shown(run_ours(broker, "quotas --describe --user bob")), has="producer_byte_rate=1000.0")
    answers.same("quotas", _shown(run_ours(broker, "quotas --describe --user bob")))
    answers.same("all quotas", _shown(run_ours(broker, "quotas --describe")))
    answers.same("users", _shown(run_ours(broker, "users --describe")))
    run_ours(broker, "users --alter --user bob --delete-config SCRAM-SHA-512")
    until(lambda: run_ours(broker, "users --describe") == "", "the user is gone")
