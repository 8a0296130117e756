"""Preallocated segments in a directory that Apache Kafka and pykbroker take over from each other after kill -9."""

from pathlib import Path

import pytest

from .apache_kafka.broker import ApacheKafka
from .brokers import BrokerProcess, Pykbroker
from .clients import READERS, Message, Stored, write_with_confluent
from .conftest import watch_log
from .topics import create_topic, wait_for_leaders

pytestmark = pytest.mark.java

SEGMENT_BYTES = 1048576
ROUND = 700
"""Records of a kilobyte each: three rounds fill two segments."""


def test_zeros_behind_the_last_batch_are_nobodys_records(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    data = tmp_path / "data"
    properties = {"log.dirs": str(data), "log.preallocate": "true"}
    brokers: list[BrokerProcess] = [
        ApacheKafka(tmp_path / "kafka-1", properties),
        Pykbroker(tmp_path / "pykbroker", {**properties, "node.id": "1"}),
        ApacheKafka(tmp_path / "kafka-2", properties, is_formatted=True),
    ]
    written: list[Stored] = []
    for number, broker in enumerate(brokers):
        watch_log(request.node, broker)
        broker.start()
        try:
            if number == 0:
                create_topic(broker, "first", configs={"segment.bytes": str(SEGMENT_BYTES)})
            create_topic(broker, f"of-round-{number}")
            assert sizes(data / f"of-round-{number}-0") == [1024**3]
            wait_for_leaders(broker, "first", 1)
            # Nobody preallocates a file that was there before; the next segment is preallocated again.
            assert (sizes(data / "first-0")[-1] == SEGMENT_BYTES) == (number == 0)
            written += write_round(broker, number)
            assert sizes(data / "first-0")[-1] == SEGMENT_BYTES
            assert_all_read(broker, written)
        finally:
            broker.kill()
    *full, _ = sizes(data / "first-0")
    assert full
    assert all(0.6 * SEGMENT_BYTES < size < SEGMENT_BYTES for size in full)


def sizes(directory: Path) -> list[int]:
    return [path.stat().st_size for path in sorted(directory.glob("*.log"))]


def write_round(broker: BrokerProcess, number: int) -> list[Stored]:
    messages = [Message(b"%d.%d" % (number, each), bytes(1000), (), 0, 0) for each in range(ROUND)]
    return write_with_confluent(broker.bootstrap, "first", messages, idempotent=True)


def assert_all_read(broker: BrokerProcess, written: list[Stored]) -> None:
    expected = [(each.offset, each.message.value) for each in written]
    assert [offset for offset, _ in expected] == list(range(len(written)))
    for name, read in READERS.items():
        found = read(broker.bootstrap, "first", 1, len(written))
        assert [(each.offset, each.message.value) for each in found] == expected, name
