"""Where a reader may begin: the ends of a log, places in time, and the middle of a batch."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from kafka import KafkaConsumer, TopicPartition

from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.records.compression import Compression

from .answers import TestAnswers
from .brokers import Broker
from .clients import read_with_kafka_python
from .hostile.scene import Scene
from .topics import create_topic
from .waiting import DEADLINE_S
from .wire import Wire

T0 = int(time.time() * 1000) - 3_600_000
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
BATCH_TIMES = ([0, 10, 20, 30], [25, 40, 35, 50], [60, 61, 62, 63])
"""Milliseconds after T0, by batch; the second is not in order. Offsets 0 to 11."""


@pytest.fixture(params=[Compression.NONE, Compression.LZ4], ids=["plain", "lz4"])
def timed_topic(broker: Broker, topic: str, request: pytest.FixtureRequest) -> Iterator[str]:
    create_topic(broker, topic)
    for times in BATCH_TIMES:
        records = [Record(None, b"at %d" % after, timestamp=T0 + after) for after in times]
        assert Scene(broker).produce(encode_batch(records, compression=request.param), topic) == "NONE"
    return topic


def offset_at(broker: Broker, topic: str, timestamp: int) -> tuple[int, int, int]:
    """Error, offset, and the timestamp found: milliseconds after T0, or -1."""
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
    with Wire(broker.address) as wire:
        answer = wire.call(request, 8)
    assert isinstance(answer, ListOffsetsResponse)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.offset, found.timestamp - T0 if found.timestamp >= 0 else -1


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (-1000, (0, 0, 0)),
        (0, (0, 0, 0)),
        (1, (0, 1, 10)),
        (15, (0, 2, 20)),
        (30, (0, 3, 30)),
        (31, (0, 5, 40)),
        (45, (0, 7, 50)),
        (51, (0, 8, 60)),
        (63, (0, 11, 63)),
        (64, (0, -1, -1)),
    ],
)
def test_a_time_gives_the_first_record_that_is_not_older(
    broker: Broker, timed_topic: str, after: int, expected: tuple[int, int, int], answers: TestAnswers
) -> None:
    answers.expect(f"{after} ms", offset_at(broker, timed_topic, T0 + after), expected)


def test_the_ends_of_the_log_and_its_latest_time(broker: Broker, timed_topic: str, answers: TestAnswers) -> None:
    found = {
        name: offset_at(broker, timed_topic, place) for name, place in (("earliest", EARLIEST), ("latest", LATEST))
    }
    answers.expect("ends", found, {"earliest": (0, 0, -1), "latest": (0, 12, -1)})
    answers.expect("greatest timestamp", offset_at(broker, timed_topic, MAX_TIMESTAMP), (0, 11, 63))


def test_an_empty_log_has_two_equal_ends_and_no_times(broker: Broker, topic: str, answers: TestAnswers) -> None:
    create_topic(broker, topic)
    found = [offset_at(broker, topic, place) for place in (EARLIEST, LATEST, MAX_TIMESTAMP, T0)]
    answers.expect("places", found, [(0, 0, -1), (0, 0, -1), (0, -1, -1), (0, -1, -1)])


def test_clients_find_offsets_by_time(broker: Broker, timed_topic: str) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    partition = TopicPartition(timed_topic, 0)
    found = consumer.offsets_for_times({partition: T0 + 31})[partition]
    assert (found.offset, found.timestamp) == (5, T0 + 40)
    assert consumer.offsets_for_times({partition: T0 + 64})[partition] is None
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 12}
    consumer.close()
    librdkafka = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    (by_time,) = librdkafka.offsets_for_times([ConfluentTopicPartition(timed_topic, 0, T0 + 31)], timeout=DEADLINE_S)
    assert by_time.offset == 5
    assert librdkafka.get_watermark_offsets(ConfluentTopicPartition(timed_topic, 0), timeout=DEADLINE_S) == (0, 12)
    librdkafka.close()


def test_a_fetch_from_the_middle_of_a_batch_returns_the_whole_batch(broker: Broker, timed_topic: str) -> None:
    wanted = FetchPartition(partition=0, fetch_offset=6, partition_max_bytes=1)
    request = FetchRequest(
        max_wait_ms=1000, min_bytes=1, max_bytes=1, topics=[FetchTopic(topic=timed_topic, partitions=[wanted])]
    )
    with Wire(broker.address) as wire:
        answer = wire.call(request, 11)
    assert isinstance(answer, FetchResponse)
    (batch,) = iter_batches(bytes(answer.responses[0].partitions[0].records), allow_partial=True)
    batch.ensure_valid()
    assert [record.offset for record in iter_records(batch)] == [4, 5, 6, 7]
    assert (answer.responses[0].partitions[0].high_watermark, answer.responses[0].partitions[0].last_stable_offset) == (
        12,
        12,
    )


def test_a_client_that_starts_in_the_middle_of_a_batch_sees_the_rest_of_it(broker: Broker, timed_topic: str) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, consumer_timeout_ms=120_000)
    partition = TopicPartition(timed_topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 6)
    offsets = [next(consumer).offset for _ in range(6)]
    consumer.close()
    assert offsets == [6, 7, 8, 9, 10, 11]


def test_a_fetch_waits_for_bytes_that_are_not_there_yet(broker: Broker, timed_topic: str) -> None:
    """A long poll: it ends when a record comes, long before its time is over."""
    wanted = FetchPartition(partition=0, fetch_offset=12, partition_max_bytes=2**20)
    request = FetchRequest(max_wait_ms=20_000, min_bytes=1, topics=[FetchTopic(topic=timed_topic, partitions=[wanted])])
    with Wire(broker.address) as wire:
        wire.send(request, 11)
        began = time.monotonic()
        assert Scene(broker).produce(encode_batch([Record(None, b"new", timestamp=T0)]), timed_topic) == "NONE"
        wire.receive()
        assert time.monotonic() - began < 10
    assert len(read_with_kafka_python(broker.bootstrap, timed_topic, 1, 13)) == 13


def test_a_fetch_without_news_ends_when_its_time_is_over(broker: Broker, timed_topic: str) -> None:
    wanted = FetchPartition(partition=0, fetch_offset=12, partition_max_bytes=2**20)
    request = FetchRequest(max_wait_ms=700, min_bytes=1, topics=[FetchTopic(topic=timed_topic, partitions=[wanted])])
    began = time.monotonic()
    with Wire(broker.address) as wire:
        answer = wire.call(request, 11)
    assert isinstance(answer, FetchResponse)
    assert 0.6 < time.monotonic() - began < 5
    assert not answer.responses[0].partitions[0].records
    assert answer.responses[0].partitions[0].records is not None, "the Java client wants empty records, not null"
