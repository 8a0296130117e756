"""A broker whose disk is full, reports errors, or is taken away: it goes on with what it can.

Apache Kafka 4.3.1 ends in all of these cases but that of one directory among several.
"""

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from .brokers import Pykbroker
from .clients import read_with_confluent
from .conftest import assert_all_went_well, watch_log
from .volumes import FailingDisk, tmpfs
from .waiting import DEADLINE_S, until

VALUE_BYTES = 50_000

StartBroker = Callable[..., Pykbroker]


@pytest.fixture
def start_broker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StartBroker]:
    """One of pykbroker's alone: Apache Kafka would not survive."""
    started: list[Pykbroker] = []

    def start(*log_dirs: Path, **properties: str) -> Pykbroker:
        given = {key.replace("_", "."): value for key, value in properties.items()}
        broker = Pykbroker(tmp_path / "broker", {"log.dirs": ",".join(map(str, log_dirs)), **given})
        started.append(broker)
        watch_log(request.node, broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        broker.kill()
        assert_all_went_well(broker)


class Writer:
    """Writes one record after another and knows what was acknowledged, by topic and partition."""

    def __init__(self, broker: Pykbroker) -> None:
        self._producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "acks": "all", "retries": 0, "message.timeout.ms": 20_000}
        )
        self._number = 0
        self.acknowledged: list[tuple[str, int, int, bytes]] = []

    def write(self, topic: str, partition: int = 0, size: int = VALUE_BYTES) -> KafkaError | None:
        value = b"%d " % self._number + bytes(size)
        self._number += 1
        outcome: list[KafkaError | None] = []

        def report(error: KafkaError | None, message: object) -> None:
            outcome.append(error)
            if error is None:
                self.acknowledged.append((topic, partition, message.offset(), value))  # type: ignore[attr-defined]

        self._producer.produce(topic, value, partition=partition, on_delivery=report)
        assert self._producer.flush(DEADLINE_S) == 0
        return outcome[0]

    def write_until_refused(self, topic: str, partition: int = 0, most: int = 5000) -> int:
        """Returns the error's code."""
        for _ in range(most):
            error = self.write(topic, partition)
            if error is not None:
                return int(error.code())
        raise AssertionError(f"{most} records were not refused")

    def check(self, broker: Pykbroker, topic: str, partition: int = 0) -> None:
        """Everything acknowledged is there, at its offset, and nothing twice."""
        wanted = [
            (offset, value) for name, index, offset, value in self.acknowledged if (name, index) == (topic, partition)
        ]
        found = {
            each.offset: each.message.value
            for each in read_with_confluent(broker.bootstrap, topic, partition + 1, len(wanted))
            if each.message.partition == partition
        }
        assert [(offset, found.get(offset)) for offset, _ in wanted] == wanted


def create(broker: Pykbroker, topic: str, partitions: int = 1, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {key.replace("_", "."): value for key, value in configs.items()}
    admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(DEADLINE_S)


def delete_records(broker: Pykbroker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    everything = ConfluentTopicPartition(topic, 0, -1)
    admin.delete_records([everything])[everything].result(DEADLINE_S)


def lines(broker: Pykbroker, text: str) -> list[str]:
    return [line for line in broker.log_text().splitlines() if text in line]


@pytest.mark.mounts
@pytest.mark.parametrize("room_by", ["removing a file", "deleting records"])
def test_a_full_disk_refuses_and_goes_on_when_there_is_room(
    start_broker: StartBroker, tmp_path: Path, room_by: str
) -> None:
    with tmpfs(tmp_path / "small", "16m") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(4 << 20))
        broker = start_broker(disk / "data", log_retention_check_interval_ms="500", log_segment_delete_delay_ms="0")
        create(broker, "kept")
        create(broker, "old", segment_bytes="1048576")
        writer = Writer(broker)
        for _ in range(40):
            assert writer.write("kept") is None
        for _ in range(60):
            assert writer.write("old") is None
        assert writer.write_until_refused("kept") == KafkaError.KAFKA_STORAGE_ERROR

        assert writer.write("old") is not None
        writer.check(broker, "kept")
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        assert "kept" in admin.list_topics(timeout=DEADLINE_S).topics
        fill(disk)
        with pytest.raises(KafkaException) as refused:
            create_for_ever(broker)
        assert refused.value.args[0].code() == KafkaError.KAFKA_STORAGE_ERROR
        assert len(lines(broker, "has no room, reading goes on")) <= 2, "one for the records, one for the metadata"

        (disk / "filling").unlink()
        if room_by == "removing a file":
            ballast.unlink()
        else:
            delete_records(broker, "old")
        until(lambda: writer.write("kept") is None, "there is room again")
        for _ in range(20):
            assert writer.write("kept") is None
        create(broker, "later")
        assert writer.write("later") is None
        until(lambda: writer.write("kept", size=10) is None and lines(broker, "data has room again"), "it is told")
        writer.check(broker, "kept")
        broker.kill()
        broker.start()
        writer.check(broker, "kept")
        writer.check(broker, "later")
        assert not lines(broker, "is offline")
        broker.stop()


def create_for_ever(broker: Pykbroker) -> None:
    """There is a little room in the metadata log's last page."""
    for number in itertools.count():
        create(broker, f"refused-{number}", 20)


def fill(disk: Path) -> None:
    """To the last page."""
    with (disk / "filling").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


@pytest.mark.mounts
def test_an_error_of_one_disk_takes_it_offline_and_the_others_serve(start_broker: StartBroker, tmp_path: Path) -> None:
    failing = FailingDisk(tmp_path / "failing", claimed_mb=200, real_mb=30)
    try:
        broker = start_broker(tmp_path / "sound", failing.path / "data", log_flush_interval_messages="1")
        create(broker, "spread", 2)
        writer = Writer(broker)
        in_failing = 0 if (failing.path / "data" / "spread-0").exists() else 1
        for index in (0, 1):
            assert writer.write("spread", index) is None
        assert writer.write_until_refused("spread", in_failing) == KafkaError.KAFKA_STORAGE_ERROR
        for _ in range(5):
            assert writer.write("spread", 1 - in_failing) is None
        assert writer.write("spread", in_failing) is not None
        assert len(lines(broker, f"log directory {failing.path / 'data'} is offline: cannot ")) == 1
        broker.stop()

        failing.detach()
        failing.repair(real_mb=220)
        failing.attach()
        broker.start()
        for index in (0, 1):
            writer.check(broker, "spread", index)
            assert writer.write("spread", index) is None
        broker.stop()
    finally:
        failing.close()


def remove(directory: Path) -> None:
    """Remove a directory in which a broker works: a file that it renames meanwhile ends one attempt."""
    until(lambda: shutil.rmtree(directory, ignore_errors=True) or not directory.exists(), f"{directory} is gone")


def test_a_directory_that_is_removed_goes_offline(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(tmp_path / "one", tmp_path / "two")
    create(broker, "spread", 2)
    writer = Writer(broker)
    gone = 0 if (tmp_path / "two" / "spread-0").exists() else 1
    for index in (0, 1):
        assert writer.write("spread", index) is None
    remove(tmp_path / "two")
    assert writer.write_until_refused("spread", gone, most=2000) == KafkaError.KAFKA_STORAGE_ERROR
    assert writer.write("spread", 1 - gone) is None
    assert len(lines(broker, f"log directory {tmp_path / 'two'} is offline")) == 1
    broker.stop()


def test_without_its_only_directory_a_broker_ends_with_one_line(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(tmp_path / "data")
    create(broker, "lost")
    writer = Writer(broker)
    assert writer.write("lost") is None
    process = broker.process
    assert process is not None
    remove(tmp_path / "data")

    def has_ended() -> bool:
        """What is idle writes no checkpoints, and so does not notice."""
        if process.poll() is None:
            writer.write("lost")
        return process.poll() is not None

    until(has_ended, "the broker has ended")
    assert process.returncode == 1
    assert len(lines(broker, "Error: ")) == 1
    broker.process = None
