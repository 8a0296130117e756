"""The commands with the flags of Kafka's tools print what these print, of the same broker.

PYKBROKER_TEST_BOOTSTRAP=host:port names a broker to use instead, of whatever make.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykbroker.protocol.api_keys import ApiKey

from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker, ExternalBroker, Pykbroker
from .clients import Message, write_with_confluent
from .names import EXTERNAL
from .own_commands import log_dirs_of, run_command, tables_of_apis, without_changing_numbers
from .referee_versions import NEW_IN_4_4
from .topics import create_topic

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker: Broker = ExternalBroker(EXTERNAL) if EXTERNAL else Pykbroker(tmp_path_factory.mktemp("own") / "broker")
    broker.start()
    yield broker
    broker.close()


@pytest.fixture
def filled(broker: Broker, topic: str) -> str:
    create_topic(broker, topic, 3)
    write_with_confluent(
        broker.bootstrap, topic, [Message(b"%d" % number, partition=number % 2) for number in range(9)]
    )
    return topic


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--time", "earliest"),
        ("--time", "0"),
        ("--time", "-3"),
        ("--time", "earliest-local"),
        ("--time", "latest-tiered"),
        ("--time", "99999999999999"),
        ("--partitions", "0,2,7"),
    ],
    ids=str,
)
def test_offsets_are_those_of_kafka_get_offsets(broker: Broker, filled: str, arguments: tuple[str, ...]) -> None:
    theirs = run_tool(
        Tool.GET_OFFSETS, "--bootstrap-server", broker.bootstrap, "--topic", filled, *arguments, allowed=(0, 1)
    )
    ours = run_command("offsets", broker.bootstrap, "--topic", filled, *arguments)
    assert (ours.returncode, ours.lines) == (theirs.returncode, theirs.lines)


@pytest.mark.parametrize("pattern", ["{0}:1", "{0}:0-2", "{0}:1-", "{0}:-2", "{0}", "{0}:0,{0}:2"])
def test_patterns_of_partitions_mean_the_same(broker: Broker, filled: str, pattern: str) -> None:
    arguments = ("--topic-partitions", pattern.format(filled))
    theirs = run_tool(Tool.GET_OFFSETS, "--bootstrap-server", broker.bootstrap, *arguments)
    assert run_command("offsets", broker.bootstrap, *arguments).lines == theirs.lines


def test_log_directories_are_those_of_kafka_log_dirs(broker: Broker, filled: str) -> None:
    arguments = ("--describe", "--topic-list", filled)
    theirs = run_tool(Tool.LOG_DIRS, "--bootstrap-server", broker.bootstrap, *arguments)
    ours = run_command("log-dirs", broker.bootstrap, *arguments)
    assert ours.lines[:2] == theirs.lines[:2]
    assert log_dirs_of(ours) == log_dirs_of(theirs)


@pytest.mark.parametrize(
    "arguments", [("--status",), ("--replication",), ("--replication", "--human-readable")], ids=str
)
def test_the_quorum_is_described_as_by_kafka_metadata_quorum(broker: Broker, arguments: tuple[str, ...]) -> None:
    theirs = run_tool(Tool.METADATA_QUORUM, "--bootstrap-server", broker.bootstrap, "describe", *arguments)
    ours = run_command("quorum", broker.bootstrap, "describe", *arguments)
    spaceless = [[" ".join(without_changing_numbers(each).split()) for each in tool.lines] for tool in (ours, theirs)]
    assert spaceless[0] == spaceless[1]


UNKNOWN_TO_4_3_1 = "UNKNOWN 33"
"""The newest metadata.version of Kafka 4.4, to a tool that has no name for it."""


def test_features_are_described_as_by_kafka_features(broker: Broker) -> None:
    theirs = run_tool(Tool.FEATURES, "--bootstrap-server", broker.bootstrap, "describe").stdout
    assert UNKNOWN_TO_4_3_1 in theirs
    named = theirs.replace(UNKNOWN_TO_4_3_1.ljust(17), "4.4-IV2".ljust(17))
    ours = run_command("features", broker.bootstrap, "describe")
    assert without_changing_numbers(ours.stdout) == without_changing_numbers(named)


@pytest.mark.parametrize(
    "arguments",
    [
        ("version-mapping",),
        ("version-mapping", "--release-version", "3.9"),
        ("version-mapping", "--release-version", "4.0-IV1"),
        ("version-mapping", "--release-version", "3.7.1"),
        ("feature-dependencies", "--feature", "eligible.leader.replicas.version=1", "--feature", "group.version=1"),
        ("feature-dependencies", "--feature", "metadata.version=25"),
        ("upgrade", "--feature", "transaction.version=2", "--dry-run"),
        ("downgrade", "--feature", "transaction.version=1", "--dry-run"),
        ("disable", "--feature", "group.version", "--dry-run"),
        ("upgrade", "--feature", "transaction.version=9"),
    ],
    ids=str,
)
def test_features_are_mapped_and_changed_as_by_kafka_features(broker: Broker, arguments: tuple[str, ...]) -> None:
    theirs = run_tool(Tool.FEATURES, "--bootstrap-server", broker.bootstrap, *arguments, allowed=(0, 1))
    ours = run_command("features", broker.bootstrap, *arguments)
    assert (ours.returncode, ours.lines) == (theirs.returncode, theirs.lines)


def test_client_metrics_are_those_of_kafka_client_metrics(broker: Broker) -> None:
    for arguments in (
        (
            "--alter",
            "--name",
            "one",
            "--metrics",
            "a.,b.",
            "--interval",
            "1000",
            "--match",
            "client_id=x,client_source_port=9",
        ),
        ("--alter", "--name", "two"),
        ("--list",),
        ("--describe",),
        ("--describe", "--name", "none"),
        ("--alter", "--name", "one", "--interval", ""),
        ("--describe", "--name", "one"),
        ("--delete", "--name", "one"),
        ("--delete", "--name", "none"),
        ("--list",),
    ):
        theirs = run_tool(Tool.CLIENT_METRICS, "--bootstrap-server", broker.bootstrap, *arguments)
        ours = run_command("client-metrics", broker.bootstrap, *arguments)
        assert [line for line in ours.lines if line] == [line for line in theirs.lines if line], arguments


def test_apis_are_those_of_kafka_broker_api_versions(broker: Broker) -> None:
    theirs = run_tool(Tool.API_VERSIONS, "--bootstrap-server", broker.bootstrap)
    ours = run_command("apis", broker.bootstrap)
    told = {title: as_told_by_4_3_1(lines) for title, lines in tables_of_apis(ours).items()}
    assert told == tables_of_apis(theirs)


def as_told_by_4_3_1(lines: list[str]) -> list[str]:
    """What a tool that knows the APIs of Kafka 4.3.1 says of a broker that has those of 4.4 as well."""
    told = []
    for line in lines:
        key = int(line.partition("(")[2].partition(")")[0])
        newest, known = NEW_IN_4_4.get(ApiKey(key), (0, 0))
        if key < ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE:
            told.append(line.replace(f"[usable: {newest}]", f"[usable: {known}]"))
        elif not line.endswith(("UNSUPPORTED,", "UNSUPPORTED")):
            told.append(f"\tUNKNOWN({key}): {newest}{',' * line.endswith(',')}")
    return told


def test_moves_are_verified_and_listed_as_by_kafka_reassign_partitions(
    broker: Broker, filled: str, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    partitions = [
        {"topic": filled, "partition": 0, "replicas": [1]},
        {"topic": filled, "partition": 1, "replicas": [1, 2]},
        {"topic": filled, "partition": 70, "replicas": [1]},
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    for arguments in (
        ("--list",),
        ("--verify", "--reassignment-json-file", str(plan), "--preserve-throttles"),
        ("--cancel", "--reassignment-json-file", str(plan), "--preserve-throttles"),
    ):
        theirs = run_tool(Tool.REASSIGN_PARTITIONS, "--bootstrap-server", broker.bootstrap, *arguments)
        ours = run_command("reassign", broker.bootstrap, *arguments)
        assert "".join(ours.lines) == "".join(theirs.lines)


def test_elections_are_told_as_by_kafka_leader_election(broker: Broker, filled: str) -> None:
    command = ("--election-type", "preferred", "--topic", filled, "--partition")
    theirs = run_tool(Tool.LEADER_ELECTION, "--bootstrap-server", broker.bootstrap, *command, "0")
    assert run_command("elect-leaders", broker.bootstrap, *command, "0").stdout == theirs.stdout
    theirs = run_tool(Tool.LEADER_ELECTION, "--bootstrap-server", broker.bootstrap, *command, "9", allowed=(1,))
    ours = run_command("elect-leaders", broker.bootstrap, *command, "9")
    assert ours.returncode == 1
    text = f"Error completing leader election (PREFERRED) for partition: {filled}-9: "
    assert ours.stderr.startswith(text)
    assert theirs.stdout.startswith(text)
