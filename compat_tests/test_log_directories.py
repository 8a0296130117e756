"""Several log directories: what lies where, and what is left when one of them cannot be used."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from pykbroker.protocol.errors import ErrorCode

from .answers import TestAnswers
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker, BrokerProcess
from .clients import Message, read_with_confluent, write_with_confluent
from .log_directories import NEWEST, describe, latest, sizes, until_led
from .topics import create_topic


def properties_of(directory: Path) -> dict[str, str]:
    lines = (directory / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
def test_sizes_of_replicas_by_version(broker: Broker, topic: str, version: int, answers: TestAnswers) -> None:
    create_topic(broker, topic, 2)
    write_with_confluent(broker.bootstrap, topic, [Message(b"value")])
    (result,) = describe(broker, {topic: [0, 1, 7], "missing": [0]}, version).results
    partitions = {
        (found.name == topic, each.partition_index): (each.partition_size, each.offset_lag, each.is_future_key)
        for found in result.topics
        for each in found.partitions
    }
    assert len(result.topics) == 1
    assert Path(result.log_dir).is_absolute()
    answers.same("partitions", partitions)
    answers.same("the rest", (result.error_code, result.total_bytes > 0, result.usable_bytes > 0, result.is_cordoned))
    answers.expect("none asked for", [each.topics for each in describe(broker, {}, version).results], [[]])


def test_partitions_are_spread_and_stay_where_they_are(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path], answers: TestAnswers
) -> None:
    broker = two_directories()
    create_topic(broker, "spread", 4)
    messages = [Message(b"%d" % number, partition=number % 4) for number in range(40)]
    write_with_confluent(broker.bootstrap, "spread", messages)
    before = sizes(describe(broker), "spread")
    answers.expect("evenly", sorted(map(len, before.values())), [2, 2])
    found = [properties_of(directory) for directory in directories]
    assert len({each["cluster.id"] for each in found}) == len({each["node.id"] for each in found}) == 1
    assert len({each["directory.id"] for each in found}) == 2
    broker.stop()
    broker.start()
    until_led(broker, "spread", range(4))
    assert sizes(describe(broker), "spread") == before
    assert len(read_with_confluent(broker.bootstrap, "spread", 4, 40)) == 40


def test_a_directory_that_cannot_be_used_does_not_take_the_other_with_it(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path]
) -> None:
    broker = two_directories()
    create_topic(broker, "spread", 4)
    messages = [Message(b"%d" % number, partition=number % 4) for number in range(40)]
    write_with_confluent(broker.bootstrap, "spread", messages)
    by_directory = sizes(describe(broker), "spread")
    here, away = set(by_directory["one"]), set(by_directory["two"])
    assert (len(here), len(away)) == (2, 2)
    broker.stop()
    aside = directories[1].with_name("aside")
    directories[1].rename(aside)
    directories[1].write_text("where a disk should be mounted")
    broker.start()
    until_led(broker, "spread", here)
    errors = {Path(each.log_dir).name: ErrorCode(each.error_code).name for each in describe(broker).results}
    assert errors == {"one": "NONE", "two": "KAFKA_STORAGE_ERROR"}
    assert {latest(broker, "spread", index) for index in here} == {("NONE", 10)}
    assert "NONE" not in {latest(broker, "spread", index)[0] for index in away}
    create_topic(broker, "later", 2)
    assert sizes(describe(broker), "later") == {"one": {0: 0, 1: 0}, "two": {}}
    broker.stop()
    directories[1].unlink()
    aside.rename(directories[1])
    broker.start()
    until_led(broker, "spread", range(4))
    assert {latest(broker, "spread", index) for index in range(4)} == {("NONE", 10)}
    assert len(read_with_confluent(broker.bootstrap, "spread", 4, 40)) == 40


def test_the_metadata_log_may_have_a_directory_of_its_own(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path], tmp_path: Path
) -> None:
    metadata = tmp_path / "metadata"
    broker = two_directories({"metadata.log.dir": str(metadata)})
    create_topic(broker, "spread", 2)
    assert (metadata / "__cluster_metadata-0").is_dir()
    assert not any((directory / "__cluster_metadata-0").exists() for directory in directories)
    assert {Path(each.log_dir).name for each in describe(broker).results} == {"one", "two"}
    assert "directory.id" in properties_of(metadata)


def test_a_cordoned_directory_gets_no_new_partitions(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path]
) -> None:
    broker = two_directories({"cordoned.log.dirs": str(directories[0])})
    create_topic(broker, "spread", 3)
    answer = describe(broker)
    assert {Path(each.log_dir).name: each.is_cordoned for each in answer.results} == {"one": True, "two": False}
    assert {name: set(found) for name, found in sizes(answer, "spread").items()} == {"one": set(), "two": {0, 1, 2}}


def test_kafka_python_describes_log_directories(broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 2)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    described = json.dumps(admin.describe_log_dirs(), default=str)
    admin.close()
    assert topic in described


@pytest.mark.java
def test_kafkas_tool_describes_log_directories(
    two_directories: Callable[..., BrokerProcess], answers: TestAnswers
) -> None:
    broker = two_directories()
    create_topic(broker, "spread", 4)
    write_with_confluent(broker.bootstrap, "spread", [Message(b"value")])
    output = run_tool(
        Tool.LOG_DIRS, "--bootstrap-server", broker.bootstrap, "--describe", "--topic-list", "spread"
    ).stdout
    (line,) = re.findall(r"^\{.*\}$", output, re.MULTILINE)
    (described,) = json.loads(line)["brokers"]
    shapes = [(Path(each["logDir"]).name, each["error"], len(each["partitions"])) for each in described["logDirs"]]
    answers.expect("directories", sorted(shapes), [("one", None, 2), ("two", None, 2)])
    partitions = [each for directory in described["logDirs"] for each in directory["partitions"]]
    answers.same("partitions", sorted((each["partition"], each["size"], each["offsetLag"]) for each in partitions))
