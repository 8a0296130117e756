"""A directory in which a Kafka before 0.11 left messages of the formats 0 and 1: Apache Kafka opens it, and so do we.

Two copies of one directory, and what the clients see of each. librdkafka and Java read everything. Whoever the broker
is, kafka-python 3.0.12 and aiokafka 0.14.0 cannot read the lz4 of format 0 (the former asks for one package more), and
aiokafka cannot read a message of format 1 with a batch behind it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from pykbroker.protocol.records.batch import encode_batch
from pykbroker.protocol.records.compression import Compression
from pykbroker.protocol.records.record import Record
from tests.legacy_messages import CODECS, messages, wrapper

from .apache_kafka.broker import ApacheKafka
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker, BrokerProcess, Pykbroker
from .clients import READERS, Message, write_with_confluent
from .conftest import assert_all_went_well, watch_log
from .topics import create_topic, wait_for_leaders
from .waiting import DEADLINE_S

pytestmark = pytest.mark.java

THEN = 1_460_000_000_000
"""The timestamp of offset 0, in milliseconds."""
WRITTEN_S = THEN // 1000 - 60
"""When the files were written. Kafka says that there is nothing of a younger time in a log whose first segment has no
timestamps and was written later; pykbroker looks into the next one.
"""
TIMES = [THEN - 1, THEN, THEN + 333, THEN + 500, THEN + 590, THEN + 4_999, THEN + 5_001]
WITHOUT_LZ4 = CODECS[:-1]
PRINTED = ("timestamp", "key", "offset")

Segments = Mapping[int, bytes]


def records(first: int, count: int, *, magic: int = 2) -> list[Record]:
    return [
        Record(
            b"key %d" % (offset % 9), b"value %d " % offset + b"-" * 90, (), THEN + offset * 10 if magic else -1, offset
        )
        for offset in range(first, first + count)
    ]


def of_format(magic: int, codecs: Sequence[Compression]) -> Segments:
    return {
        0: messages(records(0, 24, magic=magic), magic, codecs),
        24: messages(records(24, 24, magic=magic), magic, codecs),
    }


SEGMENTS: Mapping[str, Segments] = {
    "format-0": of_format(0, WITHOUT_LZ4),
    "format-0-lz4": of_format(0, CODECS),
    "format-1": of_format(1, CODECS),
    "append-time": {
        0: messages(records(0, 20, magic=1), 1) + wrapper(records(20, 5), 1, Compression.GZIP, append_time=THEN + 5_000)
    },
    "upgraded": {
        0: messages(records(0, 20, magic=0), 0, WITHOUT_LZ4),
        20: messages(records(20, 20, magic=1), 1) + encode_batch(records(40, 9), base_offset=40),
        49: encode_batch(records(49, 11), base_offset=49, partition_leader_epoch=0),
    },
}
UNREADABLE = {"format-0-lz4": ("kafka-python", "aiokafka"), "upgraded": ("aiokafka",)}
ENDS = {"format-0": 48, "format-0-lz4": 48, "format-1": 48, "append-time": 25, "upgraded": 60}


def prepare(directory: Path) -> None:
    """The topics of a Kafka that was upgraded, with the segments that it brought along."""
    kafka = ApacheKafka(directory / "preparation", {"log.dirs": str(directory / "kafka-data")})
    kafka.start()
    try:
        for topic in SEGMENTS:
            create_topic(kafka, topic, 1, {"index.interval.bytes": "300", "retention.ms": "-1"})
    finally:
        kafka.stop()
    for topic, segments in SEGMENTS.items():
        log = directory / "kafka-data" / f"{topic}-0"
        for path in log.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for base_offset, data in segments.items():
            path = log / f"{base_offset:020d}.log"
            path.write_bytes(data)
            os.utime(path, (WRITTEN_S, WRITTEN_S))
    shutil.copytree(directory / "kafka-data", directory / "data")


def view(broker: Broker) -> dict[str, object]:
    seen: dict[str, object] = {}
    for topic, end in ENDS.items():
        for name, read in READERS.items():
            if name not in UNREADABLE.get(topic, ()):
                seen[f"{topic}: {name}"] = read(broker.bootstrap, topic, 1, end)
        seen[f"{topic}: times"] = offsets_of_times(broker, topic)
    return seen


def offsets_of_times(broker: Broker, topic: str) -> list[object]:
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    ends = consumer.beginning_offsets([partition]), consumer.end_offsets([partition])
    found = [consumer.offsets_for_times({partition: time})[partition] for time in TIMES]
    consumer.close()
    return [*ends, *[each and (each.offset, each.timestamp, each.leader_epoch) for each in found]]


def printed_by_java(broker: Broker, topic: str) -> list[str]:
    properties = [word for name in PRINTED for word in ("--formatter-property", f"print.{name}=true")]
    arguments = ("--from-beginning", "--max-messages", str(ENDS[topic]), "--timeout-ms", "120000", *properties)
    return run_tool(Tool.CONSOLE_CONSUMER, "--bootstrap-server", broker.bootstrap, "--topic", topic, *arguments).lines


def printed_by_pykbroker(broker: Broker, topic: str) -> list[str]:
    properties = [word for name in PRINTED for word in ("--formatter-property", f"print.{name}=true")]
    command = [sys.executable, "-m", "pykbroker", "consume", "--bootstrap-server", broker.bootstrap, "--topic", topic]
    command += ["--from-beginning", "--max-messages", str(ENDS[topic]), "--timeout-ms", "120000", *properties]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True).stdout.splitlines()


def files(data: Path) -> dict[str, bytes]:
    """The segments and their indexes."""
    paths = [path for topic in SEGMENTS for path in (data / f"{topic}-0").iterdir()]
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in paths if path.suffix in SUFFIXES}


SUFFIXES = (".log", ".index", ".timeindex")


def test_old_messages_are_served_as_apache_kafka_serves_them(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    def started(broker: BrokerProcess) -> BrokerProcess:
        watch_log(request.node, broker)
        broker.start()
        return broker

    prepare(tmp_path)
    kafka = started(ApacheKafka(tmp_path / "kafka", {"log.dirs": str(tmp_path / "kafka-data")}, is_formatted=True))
    try:
        for topic in SEGMENTS:
            wait_for_leaders(kafka, topic, 1)
        expected = view(kafka)
        printed = {topic: printed_by_java(kafka, topic) for topic in ("format-0-lz4", "upgraded")}
    finally:
        kafka.stop()
    expected_files = files(tmp_path / "kafka-data")

    data = tmp_path / "data"
    ours = started(Pykbroker(tmp_path / "pykbroker", {"node.id": "1", "log.dirs": str(data)}))
    try:
        assert view(ours) == expected
        assert {topic: printed_by_pykbroker(ours, topic) for topic in printed} == printed
        assert printed_by_java(ours, "format-0-lz4") == printed["format-0-lz4"]
    finally:
        ours.stop()
    assert files(data) == expected_files

    (data / ".kafka_cleanshutdown").unlink()
    (data / "recovery-point-offset-checkpoint").unlink()
    ours.start()
    try:
        assert view(ours) == expected, "after a recovery of every segment"
        delete_records(ours, "upgraded", 33)
        delete_records(ours, "format-0", 5)
        written = [Message(b"new", b"key", (), THEN + 9_000 + each) for each in range(5)]
        write_with_confluent(ours.bootstrap, "format-1", written, idempotent=True)
        changed = view_of_changed(ours)
    finally:
        ours.stop()
    assert_all_went_well(ours)

    kafka = started(ApacheKafka(tmp_path / "kafka-again", {"log.dirs": str(data)}, is_formatted=True))
    try:
        for topic in SEGMENTS:
            wait_for_leaders(kafka, topic, 1)
        assert view_of_changed(kafka) == changed
    finally:
        kafka.stop()


def delete_records(broker: Broker, topic: str, offset: int) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.delete_records({TopicPartition(topic, 0): offset})
    admin.close()


def view_of_changed(broker: Broker) -> dict[str, object]:
    seen: dict[str, object] = {}
    for topic, offsets in {"upgraded": range(33, 60), "format-0": range(5, 48), "format-1": range(53)}.items():
        for name, read in READERS.items():
            if name == "aiokafka" and topic != "format-0":
                continue
            found = read(broker.bootstrap, topic, 1, len(offsets))
            assert [each.offset for each in found] == list(offsets), (topic, name)
            seen[f"{topic}: {name}"] = found
        seen[f"{topic}: times"] = offsets_of_times(broker, topic)
    return seen
