"""What consumers find on a compacted topic, when both brokers' cleaners have been over it."""

import time
from collections.abc import Sequence
from random import Random

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonTopicPartition
from kafka.structs import OffsetAndMetadata

from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.log.log import Log, LogConfig
from tests.storage.cleaning import clean

from .answers import TestAnswers
from .brokers import Broker, BrokerProcess
from .clients import CODECS, Message, write_with_confluent
from .conftest import FreshBroker
from .topics import create_topic, wait_for_leaders
from .waiting import DEADLINE_S, until

CLEANER = {"log.cleaner.backoff.ms": "100", "log.initial.task.delay.ms": "0"}
TOPIC = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "5000"}
START_MS = 1_700_000_000_000
ROUND_MS = 10_000

Row = tuple[int, bytes, bytes | None, int, tuple[tuple[str, bytes | None], ...]]


def write_rounds(broker: Broker, topic: str, rounds: Sequence[Sequence[Message]], first: int = 0) -> int:
    """Each round is a segment of its own, by its timestamps. Returns the last offset."""
    last = -1
    for number, messages in enumerate(rounds, first):
        stamped = [
            Message(each.value, each.key, each.headers, START_MS + number * ROUND_MS + index)
            for index, each in enumerate(messages)
        ]
        stored = write_with_confluent(broker.bootstrap, topic, stamped, codec=CODECS[number % len(CODECS)])
        last = stored[-1].offset
    return last


def read_to(broker: Broker, topic: str, last_offset: int) -> list[Row]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    rows: list[Row] = []
    deadline = time.monotonic() + DEADLINE_S
    try:
        while not rows or rows[-1][0] < last_offset:
            assert time.monotonic() < deadline, f"only {len(rows)} records"
            for record in consumer.consume(1000, timeout=0.5):
                assert record.error() is None, record.error()
                headers = tuple((name, value) for name, value in record.headers() or [])
                rows.append((record.offset(), record.key(), record.value(), record.timestamp()[1], headers))
    finally:
        consumer.close()
    return rows


def read_when_clean(broker: Broker, topic: str, last_offset: int, expected: set[int]) -> list[Row]:
    """Waits until no other offsets are left."""
    rows: list[Row] = []

    def is_clean() -> bool:
        rows[:] = read_to(broker, topic, last_offset)
        return {row[0] for row in rows} <= expected

    until(is_clean, f"only the latest records of {topic} are left")
    return rows


def latest_offsets(rounds: Sequence[Sequence[Message]]) -> set[int]:
    """The latest of each key before the last round, which is in the active segment, and that round."""
    cleaned = [message for messages in rounds[:-1] for message in messages]
    latest = {message.key: offset for offset, message in enumerate(cleaned)}
    return set(latest.values()) | set(range(len(cleaned), len(cleaned) + len(rounds[-1])))


def test_the_latest_record_of_each_key_is_left(fresh_broker: FreshBroker, topic: str, answers: TestAnswers) -> None:
    """Of so much that pykbroker has it done by another process; the rest of these tests is too little for that."""
    broker = fresh_broker(CLEANER)
    create_topic(broker, topic, 1, TOPIC)
    padding = Random(1).randbytes(50_000)
    rounds = [
        [
            Message(
                None if key % 5 == 4 and number % 3 == 2 else b"%d of round %d, %s" % (key, number, padding),
                b"key %d" % key,
                (("round", b"%d" % number),) if key % 2 else (),
            )
            for key in range(number % 4, 40, 1 + number % 3)
        ]
        for number in range(12)
    ]
    last = write_rounds(broker, topic, rounds)
    expected = latest_offsets(rounds)
    rows = read_when_clean(broker, topic, last, expected)
    assert {row[0] for row in rows} == expected
    answers.same("records", rows)


def test_tombstones_go_after_delete_retention_ms(fresh_broker: FreshBroker, topic: str) -> None:
    broker = fresh_broker(CLEANER)
    create_topic(broker, topic, 1, {**TOPIC, "delete.retention.ms": "1000"})
    rounds = [
        [Message(b"1", b"a"), Message(b"1", b"b")],
        [Message(None, b"a")],
        [Message(b"1", b"active")],
    ]
    last = write_rounds(broker, topic, rounds)
    assert {row[0] for row in read_when_clean(broker, topic, last, {1, 2, 3})} == {1, 2, 3}
    number = len(rounds)

    def is_gone() -> bool:
        # Only what is written anew makes a log dirty, and lets the cleaner come again.
        nonlocal number
        end = write_rounds(broker, topic, [[Message(b"1", b"active")]], number)
        number += 1
        return 2 not in {row[0] for row in read_to(broker, topic, end)}

    until(is_gone, "the tombstone is gone")
    assert 1 in {row[0] for row in read_to(broker, topic, number)}


def test_a_broker_starts_on_segments_that_were_cleaned_while_it_was_down(
    fresh_process: FreshBroker, topic: str, answers: TestAnswers
) -> None:
    """Kafka's files in, pykbroker's cleaner over them, and Kafka serves what is left."""
    broker = fresh_process({"log.cleaner.enable": "false"})
    assert isinstance(broker, BrokerProcess)
    create_topic(broker, topic, 1, TOPIC)
    rounds = [[Message(b"round %d" % number, b"key %d" % key) for key in range(number, 20)] for number in range(10)]
    last = write_rounds(broker, topic, rounds)
    broker.stop()
    config = LogConfig.from_properties(TOPIC)
    path = str(broker.data_directory / f"{topic}-0")
    disk = OsDisk()
    log = Log.open(disk, path, config, now_ms=START_MS, recovery_point=last + 1, clean_shutdown=True)
    clean(disk, log, now_ms=START_MS)
    log.close()
    broker.start()
    wait_for_leaders(broker, topic, 1)
    rows = read_to(broker, topic, last)
    assert {row[0] for row in rows} == latest_offsets(rounds)
    answers.same("records", rows)
    assert write_rounds(broker, topic, [[Message(b"1", b"after")]], len(rounds)) == last + 1


def test_committed_offsets_are_compacted_and_still_there(fresh_process: FreshBroker, topic: str) -> None:
    broker = fresh_process({**CLEANER, "offsets.topic.num.partitions": "1", "offsets.topic.segment.bytes": "1048576"})
    assert isinstance(broker, BrokerProcess)
    create_topic(broker, topic)
    partition = PythonTopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=topic, enable_auto_commit=False)
    consumer.assign([partition])
    commits = 900
    for offset in range(1, commits + 1):
        consumer.commit({partition: OffsetAndMetadata(offset, "x" * 4000, -1)})
    consumer.close()
    log = broker.data_directory / "__consumer_offsets-0"
    until(lambda: sum(file.stat().st_size for file in log.glob("*.log")) < 2 * 1024 * 1024, "old commits are gone")
    broker.stop()
    broker.start()
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=topic, enable_auto_commit=False)
    assert consumer.committed(partition) == commits
    consumer.close()
