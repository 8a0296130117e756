"""Replicas that move from one log directory of a broker to another, as KIP-113 has it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)

from .answers import TestAnswers
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker, BrokerProcess, Pykbroker
from .clients import Message, read_with_confluent, write_with_confluent
from .conftest import watch_log
from .log_directories import describe, until_led
from .topics import create_topic
from .waiting import DEADLINE_S, until
from .wire import Wire

NEWEST = 2


def alter(broker: Broker, wanted: dict[str, dict[str, list[int]]], version: int = NEWEST) -> dict[tuple[str, int], str]:
    """By directory: topics and partitions that are to be there. Returns the error of each."""
    dirs = [
        AlterReplicaLogDir(
            path=path,
            topics=[AlterReplicaLogDirTopic(name=name, partitions=indexes) for name, indexes in topics.items()],
        )
        for path, topics in wanted.items()
    ]
    with Wire(broker.address) as wire:
        answer = wire.call(AlterReplicaLogDirsRequest(dirs=dirs), version)
    assert isinstance(answer, AlterReplicaLogDirsResponse)
    return {
        (topic.topic_name, each.partition_index): ErrorCode(each.error_code).name
        for topic in answer.results
        for each in topic.partitions
    }


def where(broker: Broker, topic: str) -> dict[int, list[tuple[str, bool]]]:
    """By partition: the directories that have it, and whether it is a copy that is not complete."""
    found: dict[int, list[tuple[str, bool]]] = {}
    for result in describe(broker).results:
        for described in result.topics:
            if described.name == topic:
                for each in described.partitions:
                    found.setdefault(each.partition_index, []).append((Path(result.log_dir).name, each.is_future_key))
    return found


def other(directories: tuple[Path, Path], name: str) -> str:
    return str(directories[0] if name == "two" else directories[1])


def test_what_cannot_be_moved(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path], answers: TestAnswers
) -> None:
    broker = two_directories()
    create_topic(broker, "here", 1)
    ((name, _),) = where(broker, "here")[0]
    there = str(directories[0].with_name(name))
    answers.same("same directory", alter(broker, {there: {"here": [0]}}))
    for version in (1, NEWEST):
        answers.same(f"unknown directory, version {version}", alter(broker, {"/nowhere": {"here": [0]}}, version))
    answers.same("relative path", alter(broker, {name: {"here": [0]}}))
    answers.same("unknown topic", alter(broker, {there: {"missing": [0]}}))
    answers.same("unknown partition", alter(broker, {there: {"here": [0, 5]}}))
    answers.same("negative partition", alter(broker, {there: {"here": [-1]}}))
    answers.same("impossible name", alter(broker, {there: {"a/b": [0]}}))
    long = "x" * 214
    create_topic(broker, long, 1)
    create_topic(broker, long[1:], 1)
    answers.same("a name too long for a copy's directory", alter(broker, {other(directories, name): {long: [0]}}))
    answers.same("the same name, unknown directory", alter(broker, {"/nowhere": {long: [0], "x" * 250: [0]}}))
    answers.same("a name that just fits", alter(broker, {there: {long[1:]: [0]}}))
    answers.same("nothing", alter(broker, {}))
    answers.same("no topics", alter(broker, {there: {}}))


def test_nothing_moves_to_a_cordoned_directory(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path], answers: TestAnswers
) -> None:
    broker = two_directories({"cordoned.log.dirs": str(directories[0])})
    create_topic(broker, "here", 1)
    answers.same("cordoned", alter(broker, {str(directories[0]): {"here": [0], "missing": [0]}}))
    assert where(broker, "here") == {0: [("two", False)]}


def test_a_partition_moves_while_it_is_written(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path]
) -> None:
    broker = two_directories()
    create_topic(broker, "moving", 1, {"segment.bytes": str(1 << 20), "index.interval.bytes": "1000"})
    before = [Message(b"%d" % number * 100) for number in range(20_000)]
    write_with_confluent(broker.bootstrap, "moving", before)
    ((name, _),) = where(broker, "moving")[0]
    destination = other(directories, name)
    count = len(before)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})

    def arrived() -> bool:
        nonlocal count
        producer.produce("moving", b"%d" % count * 100)
        count += 1
        producer.poll(0)
        return where(broker, "moving") == {0: [(Path(destination).name, False)]}

    assert alter(broker, {destination: {"moving": [0]}}) == {("moving", 0): "NONE"}
    until(arrived, "the partition is in the other directory")
    for _ in range(100):
        arrived()
    assert producer.flush(DEADLINE_S) == 0
    read = read_with_confluent(broker.bootstrap, "moving", 1, count)
    assert [each.offset for each in read] == list(range(count))
    broker.kill()
    broker.start()
    until_led(broker, "moving", range(1))
    assert read_with_confluent(broker.bootstrap, "moving", 1, count) == read
    assert where(broker, "moving") == {0: [(Path(destination).name, False)]}
    write_with_confluent(broker.bootstrap, "moving", [Message(b"more")])


def test_a_move_there_and_back_and_a_deletion_on_the_way(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Of pykbroker alone: Apache Kafka's fetcher may fail when its move is taken back, and then never ends."""
    directories = tmp_path / "one", tmp_path / "two"
    broker = Pykbroker(tmp_path / "broker", {"log.dirs": ",".join(map(str, directories))})
    watch_log(request.node, broker)
    broker.start()
    try:
        _move_and_change_ones_mind(broker, directories)
    finally:
        broker.stop()


@pytest.mark.java
def test_kafkas_tool_moves_a_partition(
    two_directories: Callable[..., BrokerProcess], directories: tuple[Path, Path], tmp_path: Path
) -> None:
    broker = two_directories()
    create_topic(broker, "moving", 1)
    write_with_confluent(broker.bootstrap, "moving", [Message(b"value")])
    ((name, _),) = where(broker, "moving")[0]
    destination = other(directories, name)
    plan = tmp_path / "plan.json"
    partition = {"topic": "moving", "partition": 0, "replicas": [1], "log_dirs": [destination]}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    arguments = ("--bootstrap-server", broker.bootstrap, "--reassignment-json-file", str(plan))
    run_tool(Tool.REASSIGN_PARTITIONS, *arguments, "--execute")
    until(lambda: where(broker, "moving") == {0: [(Path(destination).name, False)]}, "the partition has moved")
    verified = run_tool(Tool.REASSIGN_PARTITIONS, *arguments, "--verify").stdout
    assert "Reassignment of replica moving-0-1 completed successfully." in verified


REPLICAS = {
    "as it is": [1],
    "none": [],
    "nobody": None,
    "an unknown broker": [7],
    "one more": [1, 7],
    "twice": [1, 1],
    "negative": [-1],
}


@pytest.mark.parametrize("version", [0, 1])
def test_reassignments_in_a_cluster_of_one(broker: Broker, topic: str, answers: TestAnswers, version: int) -> None:
    create_topic(broker, topic, 1)
    for question, replicas in REPLICAS.items():
        answers.same(question, reassign(broker, topic, 0, replicas, version))
    answers.same("unknown partition", reassign(broker, topic, 5, [1], version))
    answers.expect("unknown topic", reassign(broker, "missing", 0, [1], version)[0], "UNKNOWN_TOPIC_OR_PARTITION")


def reassign(
    broker: Broker, topic: str, index: int, replicas: list[int] | None, version: int
) -> tuple[str, str | None]:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=topic, partitions=[partition])])
    with Wire(broker.address) as wire:
        answer = wire.call(request, version)
    assert isinstance(answer, AlterPartitionReassignmentsResponse)
    assert answer.error_code == 0
    ((found,),) = (each.partitions for each in answer.responses)
    message = found.error_message and found.error_message.replace(topic, "TOPIC")
    return ErrorCode(found.error_code).name, message


def _move_and_change_ones_mind(broker: Broker, directories: tuple[Path, Path]) -> None:
    create_topic(broker, "moving", 2)
    write_with_confluent(broker.bootstrap, "moving", [Message(b"x" * 1000, partition=n % 2) for n in range(20_000)])
    at_first = where(broker, "moving")
    for index, ((name, _),) in at_first.items():
        alter(broker, {other(directories, name): {"moving": [index]}})
        alter(broker, {str(directories[0].with_name(name)): {"moving": [index]}})
    until(lambda: where(broker, "moving") == at_first, "everything is where it was")
    for index, ((name, _),) in at_first.items():
        alter(broker, {other(directories, name): {"moving": [index]}})
    with_topic = [directory for directory in directories if any(directory.glob("moving-*"))]
    assert with_topic
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics(["moving"])["moving"].result(DEADLINE_S)
    until(lambda: not where(broker, "moving"), "nothing of the topic is left")
    paths = [path for directory in directories for path in (directory.glob("moving-*"))]
    assert paths, "files go later"
    until(lambda: not [path for each in directories for path in each.glob("*-future")], "no copy is left")
