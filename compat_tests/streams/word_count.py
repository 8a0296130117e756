"""A Kafka Streams application with `group.protocol=streams` that counts words, and what a broker says of its group."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer

from compat_tests.apache_kafka.jars import class_path
from compat_tests.apache_kafka.java import find_java
from compat_tests.brokers import Broker
from compat_tests.wire import Wire
from pykbroker.protocol.messages.streams_groups import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

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
    """One process of the application. said: the lines that it has written. jars: of which release it is."""

    def __init__(self, broker: Broker, directory: Path, jars: str) -> None:
        directory.mkdir()
        with (directory / "errors").open("w") as errors:
            self.process = subprocess.Popen(
                [
                    find_java(),
                    "-Xmx256m",
                    "-cp",
                    jars,
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
def application(broker: Broker, directory: Path, jars: str | None = None) -> Iterator[Application]:
    """Run a process within the block. jars: a class path; None for that of the referee's release."""
    process = Application(broker, directory, jars or class_path())
    try:
        yield process
    finally:
        process.kill()


def describe(broker: Broker, version: int = 0) -> DescribedGroup:
    """version: since 1 with the description of the topology."""
    request = StreamsGroupDescribeRequest(group_ids=[GROUP], include_topology_description=version > 0)
    with Wire(broker.address) as wire:
        answer = wire.call(request, version)
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
