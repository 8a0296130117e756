"""`kafka-acls.sh`, and one data directory with ACLs that pykbroker and Apache Kafka take over from each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.broker import ApacheKafka
from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.brokers import Broker, BrokerProcess, Pykbroker
from compat_tests.conftest import FreshBroker

from .test_acls import OPEN_TO_ALL, Asking, settled

pytestmark = pytest.mark.java


def acls(broker: Broker, *arguments: str) -> list[str]:
    """What the tool prints, without empty lines and without the frames of a stack."""
    output = run_tool(Tool.ACLS, "--bootstrap-server", broker.bootstrap, *arguments, allowed=(0, 1))
    return sorted(line.strip() for line in output.lines if line.strip() and not line.startswith("\tat "))


def test_the_tool_adds_lists_and_removes(fresh_broker: FreshBroker, answers: TestAnswers) -> None:
    broker = fresh_broker(OPEN_TO_ALL)
    producer = ("--allow-principal", "User:alice", "--producer", "--topic", "orders", "--transactional-id", "tx")
    consumer = ("--allow-principal", "User:bob", "--consumer", "--topic", "orders", "--group", "readers")
    denied = ("--deny-principal", "User:eve", "--deny-host", "10.0.0.7", "--operation", "All", "--topic", "*")
    prefixed = ("--allow-principal", "User:bob", "--operation", "Read", "--topic", "or")
    answers.same("a producer", acls(broker, "--add", *producer))
    answers.same("a consumer", acls(broker, "--add", *consumer))
    answers.same("a denial", acls(broker, "--add", *denied))
    answers.same("a prefix", acls(broker, "--add", *prefixed, "--resource-pattern-type", "prefixed"))
    answers.same(
        "a bad principal", acls(broker, "--add", "--allow-principal", "bob", "--operation", "Read", "--topic", "t")
    )
    settled(Asking(broker), 10)
    answers.same("all", acls(broker, "--list"))
    answers.same("of a topic", acls(broker, "--list", "--topic", "orders", "--resource-pattern-type", "match"))
    answers.same("of a principal", acls(broker, "--list", "--principal", "User:bob"))
    answers.same("removed", acls(broker, "--remove", "--force", "--topic", "orders"))
    settled(Asking(broker), 5)
    answers.same("left", acls(broker, "--list"))


def _pykbroker(directory: Path, log_dirs: Path, number: int) -> BrokerProcess:
    return Pykbroker(directory / f"pykbroker-{number}", _properties(log_dirs))


def _apache_kafka(directory: Path, log_dirs: Path, number: int) -> BrokerProcess:
    return ApacheKafka(directory / f"kafka-{number}", _properties(log_dirs), is_formatted=number > 0)


def _properties(log_dirs: Path) -> dict[str, str]:
    """Snapshots are frequent, so that each broker reads one of the other's."""
    small = {"metadata.log.max.record.bytes.between.snapshots": "1000"}
    return OPEN_TO_ALL | small | {"node.id": "1", "log.dirs": str(log_dirs)}


Make = Callable[[Path, Path, int], BrokerProcess]


@pytest.mark.parametrize(
    "order",
    [(_pykbroker, _apache_kafka, _pykbroker), (_apache_kafka, _pykbroker, _apache_kafka)],
    ids=["ours", "kafka"],
)
def test_acls_change_hands_with_their_directory(tmp_path: Path, order: tuple[Make, ...]) -> None:
    known = None
    for number, make in enumerate(order):
        broker = make(tmp_path, tmp_path / "data", number)
        broker.start()
        try:
            asking = Asking(broker)
            if known is not None:
                assert settled(asking, len(known)) == (0, "", known)
                assert asking.create({"resource_name": "topic-000"}) == [(0, "")], "it is there already"
                assert asking.delete({"resource_name_filter": f"topic-{number:03d}"})[0][:2] == (0, None)
            names = [{"resource_name": f"topic-{each:03d}"} for each in range(number * 50, number * 50 + 50)]
            assert set(asking.create(*names)) == {(0, "")}
            known = settled(asking, 50 if known is None else len(known) + 49)[2]
        finally:
            broker.close()
