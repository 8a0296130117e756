"""The load generator against a pykbroker: what it says that the broker was given is in the log, and errors end it."""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

from benchmarks.bench import Bench
from benchmarks.cores import TwoNodes
from benchmarks.java_tools import JavaTools
from benchmarks.measured_load import LoadFailed, load
from compat_tests.brokers import Pykbroker
from compat_tests.waiting import until

pytestmark = pytest.mark.skipif(
    shutil.which("go") is None, reason="the load generator is built with Go, which is not here"
)

SECONDS = 0.5
PARTITIONS = 3


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    broker = Pykbroker(tmp_path_factory.mktemp("broker"), {"auto.create.topics.enable": "false"})
    broker.start()
    try:
        yield Bench(broker, JavaTools("java", ""), 1.0)
    finally:
        broker.close()


def records_in(bench: Bench, topic: str, partitions: int = PARTITIONS) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bench.broker.bootstrap, "group.id": "nobody"})
    try:
        all_of_it = [TopicPartition(topic, number) for number in range(partitions)]
        return [consumer.get_watermark_offsets(partition, timeout=30)[1] for partition in all_of_it]
    finally:
        consumer.close()


@pytest.mark.parametrize("batches", [1, PARTITIONS])
def test_what_was_given_is_in_the_logs_of_all_partitions(bench: Bench, batches: int) -> None:
    topic = f"given-{batches}"
    bench.create_topic(topic, PARTITIONS)
    options: dict[str, int | str] = {"records": 7, "size": 50, "batches": batches, "clients": 2}
    given = load(bench, "produce", topic, seconds=SECONDS, warm_s=0, options=options)
    ends = records_in(bench, topic)
    assert given.records == 7 * given.batches == 7 * batches * given.requests > 0
    assert given.records <= sum(ends)
    assert all(end and end % 7 == 0 for end in ends)
    assert given.cpu_s > 0
    assert given.latency_ms["p50"] <= given.latency_ms["p99.9"] <= given.latency_ms["max"]


def test_what_was_produced_at_a_rate_arrives(bench: Bench) -> None:
    bench.create_topic("steady", 1)
    given = load(bench, "steady", "steady", seconds=1, warm_s=0.2, options={"rate": 1_000})
    assert abs(given.records - 1_000) <= 1
    assert given.end_to_end_ms["p50"] > 0


def test_an_answer_that_is_an_error_ends_it(bench: Bench) -> None:
    bench.create_topic("small", 1, {"max.message.bytes": "200"})
    with pytest.raises(LoadFailed, match="MESSAGE_TOO_LARGE"):
        load(bench, "produce", "small", seconds=SECONDS, warm_s=0, options={"size": 1_000})


def test_what_is_not_answered_has_no_latency(bench: Bench) -> None:
    bench.create_topic("unanswered", 1)
    given = load(bench, "produce", "unanswered", seconds=SECONDS, warm_s=0, options={"acks": 0})
    assert given.requests > 0
    assert given.latency_ms == {}


def test_an_empty_topic_cannot_be_fetched(bench: Bench) -> None:
    bench.create_topic("empty", 1)
    with pytest.raises(LoadFailed, match="partition 0 has no records"):
        load(bench, "fetch", "empty", seconds=SECONDS, warm_s=0)


def test_more_partitions_than_there_are_cannot_be_fetched(bench: Bench) -> None:
    bench.create_topic("narrow", 1)
    with pytest.raises(LoadFailed, match="2 partitions of 1"):
        load(bench, "fetch", "narrow", seconds=SECONDS, warm_s=0, options={"partitions": 2})


def test_each_partition_gets_its_batches_from_a_connection_to_its_leader(tmp_path: Path) -> None:
    broker = TwoNodes(tmp_path, {"auto.create.topics.enable": "false"})
    broker.start()
    try:
        two = Bench(broker, JavaTools("java", ""), 1.0)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        until(lambda: len(admin.list_topics(timeout=30).brokers) == 2, "both nodes are in the cluster")
        two.create_topic("led", 2 * PARTITIONS)
        led = admin.list_topics("led", timeout=30).topics["led"].partitions.values()
        assert {partition.leader for partition in led} == {1, 2}
        options: dict[str, int | str] = {"clients": 2, "most-bytes": 100_000, "size": 1_000}
        given = load(two, "produce", "led", seconds=60, warm_s=0, options=options)
        ends = records_in(two, "led", 2 * PARTITIONS)
        assert given.records == sum(ends) > 0
        assert all(ends)
    finally:
        broker.close()


def test_more_batches_than_partitions_are_refused(bench: Bench) -> None:
    bench.create_topic("one", 1)
    with pytest.raises(LoadFailed, match="2 batches for 1 partitions of a broker"):
        load(bench, "produce", "one", seconds=SECONDS, warm_s=0, options={"batches": 2})


def test_it_ends_at_its_most_bytes(bench: Bench) -> None:
    bench.create_topic("most", PARTITIONS)
    options: dict[str, int | str] = {"size": 1_000, "clients": 2, "most-bytes": 200_000}
    given = load(bench, "produce", "most", seconds=60, warm_s=0, options=options)
    assert 0 < given.bytes <= 200_000
    assert given.seconds < 60
    assert given.records == sum(records_in(bench, "most")) >= 150


def test_most_bytes_that_the_warm_up_takes_are_an_error(bench: Bench) -> None:
    bench.create_topic("warm", PARTITIONS)
    with pytest.raises(LoadFailed, match="before anything was measured"):
        load(bench, "produce", "warm", seconds=1, warm_s=60, options={"most-bytes": 10_000})


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_of_each_codec_are_read_by_kafka_python(bench: Bench, codec: str) -> None:
    topic = f"codec-{codec}"
    bench.create_topic(topic, PARTITIONS)
    options: dict[str, int | str] = {"records": 5, "size": 60, "codec": codec, "most-bytes": 20_000}
    given = load(bench, "produce", topic, seconds=60, warm_s=0, options=options)
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bench.broker.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=30_000
    )
    read = list(itertools.islice(consumer, given.records))
    consumer.close()
    assert len(read) == given.records == sum(records_in(bench, topic)) > 0
    assert {len(record.value or b"") for record in read} == {60}
