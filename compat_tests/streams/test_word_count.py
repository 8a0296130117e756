"""A Kafka Streams application with `group.protocol=streams`: two processes share its tasks, then one goes on alone."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.jars import class_path
from compat_tests.apache_kafka.java import find_java
from compat_tests.brokers import Broker
from compat_tests.conftest import FreshBroker
from compat_tests.topics import create_topic
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.group_admin import ListGroupsRequest, ListGroupsResponse
from pykbroker.protocol.messages.streams_groups import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parent / "java" / "WordCount.java"
SETTINGS = {
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "500",
}
GROUP, INPUT, OUTPUT = "words", "lines", "counts"
LINES = 50
START_S = 120


class Application:
    """One process of the application. said: the lines that it has written."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        directory.mkdir()
        with (directory / "errors").open("w") as errors:
            self.process = subprocess.Popen(
                [
                    find_java(),
                    "-Xmx256m",
                    "-cp",
                    class_path(),
                    str(PROGRAM),
                    broker.bootstrap,
                    GROUP,
                    INPUT,
                    OUTPUT,
                    str(directory / "state"),
                    "streams",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.strip())

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)
        self._reader.join()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def application(broker: Broker, directory: Path) -> Iterator[Application]:
    process = Application(broker, directory)
    try:
        yield process
    finally:
        process.kill()


def describe(broker: Broker) -> DescribedGroup:
    with Wire(broker.address) as wire:
        answer = wire.call(StreamsGroupDescribeRequest(group_ids=[GROUP]), 0)
    assert isinstance(answer, StreamsGroupDescribeResponse)
    (group,) = answer.groups
    return group


def shares(group: DescribedGroup) -> list[int]:
    """How many active tasks each member has."""
    return sorted(sum(len(each.partitions) for each in member.assignment.active_tasks) for member in group.members)


def is_shared_by(broker: Broker, members: int) -> bool:
    group = describe(broker)
    return group.group_state == "Stable" and len(group.members) == members


class Counts:
    """The newest count of each word."""

    def __init__(self, broker: Broker) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"}
        )
        self._consumer.subscribe([OUTPUT])
        self._newest: dict[str, int] = {}

    def newest(self) -> dict[str, int]:
        while (message := self._consumer.poll(0.2)) is not None:
            if message.error() is None:
                self._newest[message.key().decode()] = int.from_bytes(message.value(), "big")
        return self._newest

    def close(self) -> None:
        self._consumer.close()


def produce(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(LINES):
        producer.produce(INPUT, f"every word-{number % 7}", key=str(number))
    assert producer.flush(30) == 0


def test_two_processes_share_the_tasks_and_one_goes_on_with_the_state_of_both(
    fresh_broker: FreshBroker, tmp_path: Path, answers: TestAnswers
) -> None:
    broker = fresh_broker(SETTINGS)
    create_topic(broker, INPUT, partitions=4)
    create_topic(broker, OUTPUT, partitions=2)
    counts = Counts(broker)
    with application(broker, tmp_path / "one") as one, application(broker, tmp_path / "two") as two:
        until(lambda: is_shared_by(broker, 2), "two processes share the tasks", START_S)
        described = describe(broker)
        answers.same("shares", shares(described))
        assert described.topology is not None
        answers.same(
            "topology",
            [
                [
                    each.subtopology_id,
                    each.source_topics,
                    [(topic.name, topic.partitions) for topic in each.repartition_source_topics],
                    [(topic.name, topic.partitions) for topic in each.state_changelog_topics],
                ]
                for each in described.topology.subtopologies or ()
            ],
        )
        produce(broker)
        until(lambda: counts.newest().get("every") == LINES, "both count", START_S)
        one.kill()
        produce(broker)
        until(lambda: counts.newest().get("every") == 2 * LINES, "the other goes on where the killed one was", START_S)
        until(lambda: is_shared_by(broker, 1), "the killed one is out", START_S)
        answers.same("shares of one", shares(describe(broker)))
        two.stop()
        assert "closed" in two.said, two.said
        assert not [line for line in one.said + two.said if line.startswith("failed")]
    answers.same("counts", sorted(counts.newest().items()))
    counts.close()
    until(lambda: describe(broker).group_state == "Empty", "the last one has left")
    with Wire(broker.address) as wire:
        listed = wire.call(ListGroupsRequest(types_filter=["streams"]), 5)
    assert isinstance(listed, ListGroupsResponse)
    answers.same("listed", [(each.group_id, each.group_type, each.protocol_type) for each in listed.groups])
