"""What a log forgets: by time, by size and on request; and that whoever reads it learns where it begins."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pykbroker.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykbroker.protocol.records.batch import Record, encode_batch

from .answers import TestAnswers
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker, BrokerProcess
from .clients import read_with_confluent
from .hostile.scene import Scene
from .topics import create_topic
from .waiting import DEADLINE_S, until
from .wire import Wire

HOUR_MS = 3_600_000
MEBIBYTE = "1048576"
EARLIEST, EARLIEST_LOCAL, LATEST = -2, -4, -1

EAGER = {
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
    "log.segment.delete.delay.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "200",
}
"""What is due after minutes by default, at once."""


def write(broker: Broker, topic: str, count: int, *, size: int = 10, age_ms: int = 0) -> None:
    """Batches of one record each."""
    for number in range(count):
        timestamp = int(time.time() * 1000) - age_ms
        record = Record(b"%d" % number, os.urandom(size), timestamp=timestamp)
        assert Scene(broker).produce(encode_batch([record]), topic) == "NONE"


def offset_at(broker: Broker, topic: str, place: int) -> int:
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=place)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
    with Wire(broker.address) as wire:
        answer = wire.call(request, 8)
    assert isinstance(answer, ListOffsetsResponse)
    found = answer.topics[0].partitions[0]
    assert found.error_code == 0, ErrorCode(found.error_code)
    return found.offset


def ends(broker: Broker, topic: str) -> tuple[int, int, int]:
    return (
        offset_at(broker, topic, EARLIEST),
        offset_at(broker, topic, EARLIEST_LOCAL),
        offset_at(broker, topic, LATEST),
    )


def fetch(broker: Broker, topic: str, offset: int) -> tuple[str, int]:
    """Error and log start offset."""
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**20)
    request = FetchRequest(max_wait_ms=100, min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[wanted])])
    with Wire(broker.address) as wire:
        answer = wire.call(request, 11)
    assert isinstance(answer, FetchResponse)
    found = answer.responses[0].partitions[0]
    return ErrorCode(found.error_code).name, found.log_start_offset


def delete(broker: Broker, *asked: tuple[str, int, int], version: int = 2) -> dict[tuple[str, int], tuple[str, int]]:
    topics = [
        DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)])
        for topic, index, offset in asked
    ]
    with Wire(broker.address) as wire:
        answer = wire.call(DeleteRecordsRequest(topics=topics, timeout_ms=10_000), version)
    assert isinstance(answer, DeleteRecordsResponse)
    return {
        (topic.name, each.partition_index): (ErrorCode(each.error_code).name, each.low_watermark)
        for topic in answer.topics
        for each in topic.partitions
    }


def log_files(broker: BrokerProcess, topic: str) -> list[str]:
    return sorted(path.name for path in (broker.data_directory / f"{topic}-0").iterdir())


# By time and by size


def test_records_that_are_too_old_go_with_their_files(fresh_process: Callable[..., BrokerProcess]) -> None:
    broker = fresh_process(EAGER)
    create_topic(broker, "kept", configs={"retention.ms": "-1"})
    create_topic(broker, "aging", configs={"retention.ms": "600000", "segment.bytes": MEBIBYTE})
    write(broker, "kept", 3, age_ms=HOUR_MS)
    write(broker, "aging", 4, size=600_000)
    assert ends(broker, "aging") == (0, 0, 4)
    write(broker, "aging", 1, size=600_000, age_ms=HOUR_MS)
    assert ends(broker, "aging") == (0, 0, 5), "an old record behind a younger one stays with it"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    set_topic_config(admin, "aging", "retention.ms", "1")
    until(lambda: ends(broker, "aging") == (5, 5, 5), "everything is gone")
    until(lambda: not [name for name in log_files(broker, "aging") if ".deleted" in name], "the files are removed")
    assert [name for name in log_files(broker, "aging") if name.endswith(".log")] == ["00000000000000000005.log"]
    assert ends(broker, "kept") == (0, 0, 3)
    set_topic_config(admin, "aging", "retention.ms", "600000")
    write(broker, "aging", 1)
    assert [each.offset for each in read_with_confluent(broker.bootstrap, "aging", 1, 1)] == [5]


def set_topic_config(admin: AdminClient, topic: str, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(DEADLINE_S)


def test_a_log_is_cut_to_the_segments_that_its_size_needs(
    fresh_process: Callable[..., BrokerProcess], answers: TestAnswers
) -> None:
    broker = fresh_process(EAGER)
    create_topic(broker, "large", configs={"retention.bytes": "1500000", "segment.bytes": MEBIBYTE})
    write(broker, "large", 5, size=600_000)
    until(lambda: offset_at(broker, "large", EARLIEST) >= 2, "what is too much is gone")
    answers.expect("ends", ends(broker, "large"), (2, 2, 5))
    assert [each.offset for each in read_with_confluent(broker.bootstrap, "large", 1, 3)] == [2, 3, 4]


def test_the_start_is_where_it_was_after_kill_9(fresh_process: Callable[..., BrokerProcess]) -> None:
    broker = fresh_process(EAGER)
    create_topic(broker, "large", configs={"retention.bytes": "1500000", "segment.bytes": MEBIBYTE})
    write(broker, "large", 5, size=600_000)
    until(lambda: offset_at(broker, "large", EARLIEST) == 2, "retention did its work")
    broker.kill()
    broker.start()
    until_it_leads(broker, "large")
    assert ends(broker, "large") == (2, 2, 5)


def until_it_leads(broker: Broker, topic: str) -> None:
    def leads() -> bool:
        wanted = [ListOffsetsPartition(partition_index=0, timestamp=LATEST)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
        with Wire(broker.address) as wire:
            answer = wire.call(request, 8)
        assert isinstance(answer, ListOffsetsResponse)
        return answer.topics[0].partitions[0].error_code == 0

    until(leads, f"{topic} has a leader")


# On request


@pytest.mark.parametrize("version", [0, 1, 2])
def test_deleted_records_are_out_of_range(broker: Broker, topic: str, version: int, answers: TestAnswers) -> None:
    create_topic(broker, topic)
    write(broker, topic, 10)
    steps = {offset: delete(broker, (topic, 0, offset), version=version)[topic, 0] for offset in (4, 2, 11, -2)}
    expected = {4: ("NONE", 4), 2: ("NONE", 4), 11: ("OFFSET_OUT_OF_RANGE", -1), -2: ("OFFSET_OUT_OF_RANGE", -1)}
    answers.expect("answers", steps, expected)
    assert ends(broker, topic) == (4, 4, 10)
    answers.expect(
        "fetches", {at: fetch(broker, topic, at) for at in (3, 4)}, {3: ("OFFSET_OUT_OF_RANGE", -1), 4: ("NONE", 4)}
    )
    answers.expect("to the high watermark", delete(broker, (topic, 0, -1), version=version)[topic, 0], ("NONE", 10))
    assert ends(broker, topic) == (10, 10, 10)


def test_deletions_that_are_refused(broker: Broker, unique: Callable[[str], str], answers: TestAnswers) -> None:
    compacted, both, missing = unique("compacted"), unique("both"), unique("missing")
    create_topic(broker, compacted, configs={"cleanup.policy": "compact"})
    create_topic(broker, both, configs={"cleanup.policy": "compact,delete"})
    given = delete(
        broker,
        (compacted, 0, 0),
        (both, 0, -1),
        (both, 1, 0),
        (missing, 0, 0),
        ("__cluster_metadata", 0, 0),
    )
    named = {name: given[key] for name, key in (("compacted", (compacted, 0)), ("both", (both, 0)))}
    named |= {"no partition": given[both, 1], "no topic": given[missing, 0], "metadata": given["__cluster_metadata", 0]}
    answers.same("answers", named)
    assert named["compacted"] == ("POLICY_VIOLATION", -1)


def test_odd_deletions(broker: Broker, topic: str, answers: TestAnswers) -> None:
    create_topic(broker, topic)
    write(broker, topic, 10)
    answers.expect("twice", delete(broker, (topic, 0, 6), (topic, 0, 4))[topic, 0], ("NONE", 4))
    assert ends(broker, topic) == (4, 4, 10)
    Scene(broker).group()
    names = ("__consumer_offsets", "", "..", "../../etc/passwd", "a b", "x" * 300)
    answers.same("names", {name: delete(broker, (name, 0, 0))[name, 0] for name in names})
    far = 2**63 - 1
    answers.same("far", [delete(broker, (topic, index, far))[topic, index] for index in (0, 2**31 - 1, -1)])
    answers.expect("nothing", delete(broker), {})


def test_clients_delete_records_and_go_on_behind_them(broker: Broker, topic: str) -> None:
    create_topic(broker, topic)
    write(broker, topic, 10)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    (future,) = admin.delete_records([ConfluentTopicPartition(topic, 0, 3)]).values()
    assert future.result(DEADLINE_S).low_watermark == 3
    kafka_python = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    kafka_python.delete_records({TopicPartition(topic, 0): 6})
    kafka_python.close()
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=120_000
    )
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek(TopicPartition(topic, 0), 1)
    assert [next(consumer).offset for _ in range(4)] == [6, 7, 8, 9]
    consumer.close()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_deleted_records_do_not_come_back(fresh_process: Callable[..., BrokerProcess], end: str) -> None:
    broker = fresh_process(EAGER)
    create_topic(broker, "short")
    write(broker, "short", 10)
    assert delete(broker, ("short", 0, 7)) == {("short", 0): ("NONE", 7)}
    checkpoint = broker.data_directory / "log-start-offset-checkpoint"
    if broker.kind == "apache-kafka":
        # It answers before that; pykbroker does not.
        until(lambda: "short 0 7" in checkpoint.read_text(), "the checkpoint is written")
    assert "short 0 7" in checkpoint.read_text().splitlines()
    getattr(broker, end)()
    broker.start()
    until_it_leads(broker, "short")
    assert ends(broker, "short") == (7, 7, 10)
    write(broker, "short", 1)
    assert [each.offset for each in read_with_confluent(broker.bootstrap, "short", 1, 4)] == [7, 8, 9, 10]


@pytest.mark.java
def test_kafkas_tool_deletes_records(broker: Broker, topic: str, tmp_path: Path, answers: TestAnswers) -> None:
    create_topic(broker, topic, 2)
    write(broker, topic, 5)
    wanted = [{"topic": topic, "partition": 0, "offset": 3}, {"topic": topic, "partition": 1, "offset": 1}]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"version": 1, "partitions": wanted}))
    output = run_tool(
        Tool.DELETE_RECORDS, "--bootstrap-server", broker.bootstrap, "--offset-json-file", str(file), allowed=(0, 1)
    )
    lines = sorted(line.replace(topic, "T") for line in output.lines if line.startswith("partition:"))
    answers.same("lines", lines)
    assert "partition: T-0\tlow_watermark: 3" in lines
