"""The load generator against a pykbroker: what it says that the broker was given is in the log, and errors end it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from benchmarks.bench import Bench
from benchmarks.java_tools import JavaTools
from benchmarks.measured_load import LoadFailed, load
from compat_tests.brokers import Pykbroker

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
        yield Bench(broker, JavaTools(Path("java"), ""), 1.0)
    finally:
        broker.close()


def records_in(bench: Bench, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bench.broker.bootstrap, "group.id": "nobody"})
    try:
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return [consumer.get_watermark_offsets(partition, timeout=30)[1] for partition in partitions]
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


def test_more_batches_than_partitions_are_refused(bench: Bench) -> None:
    bench.create_topic("one", 1)
    with pytest.raises(LoadFailed, match="2 batches for 1 partitions"):
        load(bench, "produce", "one", seconds=SECONDS, warm_s=0, options={"batches": 2})
