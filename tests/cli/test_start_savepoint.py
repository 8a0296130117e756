"""`pykbroker start --savepoint`: a process that begins where a broker was saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.waiting import until
from pykbroker.testing import Broker
from pykbroker.testing.external_kafka import ExternalKafka

from .test_start import StartNode, refused, start  # noqa: F401 - a fixture


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("savepoint") / "seeded.savepoint"
    with Broker({"node.id": 5}) as broker:
        broker.create_topic("t").produce("one")
        broker.save(path)
    return path


def values_at(port: int) -> list[bytes | None]:
    bootstrap = {"bootstrap.servers": f"127.0.0.1:{port}"}
    producer = Producer(bootstrap)
    producer.produce("t", b"two")
    assert producer.flush(30) == 0
    consumer = Consumer({**bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    messages = [consumer.poll(30), consumer.poll(30)]
    consumer.close()
    return [message and message.value() for message in messages]


@pytest.mark.parametrize("flags", [("--ephemeral",), ("--data-dir", "data")], ids=["ephemeral", "directory"])
def test_a_process_begins_with_it(savepoint: Path, flags: tuple[str, ...], start: StartNode) -> None:  # noqa: F811
    node = start(*flags, "--savepoint", savepoint)
    assert node.ready[2] == "5"
    assert values_at(node.port) == [b"one", b"two"]
    assert node.end()[0] == 0


def test_a_process_is_as_late_as_its_savepoint(tmp_path: Path, start: StartNode) -> None:  # noqa: F811
    """The record is seven days old by the clock of the savepoint, and the topic keeps six days by now."""
    path = tmp_path / "late.savepoint"
    with Broker({"log.retention.check.interval.ms": 2_000_000_000}) as broker:
        topic = broker.create_topic("t", configs={"retention.ms": 8 * 86_400_000})
        topic.produce("old")
        broker.clock.advance("7d", scope="retention")
        topic.alter_configs({"retention.ms": 6 * 86_400_000})
        broker.save(path)
    quickly = ("--override", "log.retention.check.interval.ms=100", "--override", "log.initial.task.delay.ms=100")
    node = start("--ephemeral", "--savepoint", path, *quickly)
    with ExternalKafka(f"127.0.0.1:{node.port}") as kafka:
        until(lambda: kafka.topic("t").start_offsets() == {0: 1}, "the record is deleted")
    assert node.end()[0] == 0


def test_what_cannot_be_is_one_line(savepoint: Path, tmp_path: Path) -> None:
    (tmp_path / "full" / "t-0").mkdir(parents=True)
    assert "is not empty" in refused("--data-dir", "full", "--savepoint", str(savepoint), cwd=tmp_path)
    assert "node.id is 1" in refused("--override", "node.id=1", "--savepoint", str(savepoint), cwd=tmp_path)
    (tmp_path / "damaged").write_bytes(savepoint.read_bytes()[:20000])
    assert "damaged" in refused("--ephemeral", "--savepoint", "damaged", cwd=tmp_path)
    assert "cannot be read" in refused("--ephemeral", "--savepoint", "none", cwd=tmp_path)
    assert "exclude each other" in refused("--secure", "s", "--savepoint", str(savepoint), cwd=tmp_path)
    assert not (tmp_path / "pykbroker-data").exists()
