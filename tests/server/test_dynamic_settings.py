"""Settings of a broker that change while it runs: each test shows what the broker does otherwise then."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, TypeVarTuple, Unpack

import pytest
import trio

from pykbroker.metadata.image import BROKER_RESOURCE, ImageChanges, MetadataImage
from pykbroker.protocol.messages.metadata_records import ConfigRecord
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.server.node.composition.replicas import node_replication
from pykbroker.server.node.dynamic_settings import DynamicSettings
from pykbroker.server.replicas.replica_fetcher import ReplicaFetchers
from pykbroker.server.runtime.threads import OnTheLoop
from tests.api.api_node import ApiNode, in_virtual_time

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class World:
    """A broker whose replicas run, and whose settings the test changes."""

    def __init__(self, path: Path, properties: dict[str, str] | None = None) -> None:
        self.node = ApiNode(path, properties)
        replication = node_replication(
            self.node.config, self.node.replicas, self.node.transactions.inter_broker, self.node.clock
        )
        self.fetchers: ReplicaFetchers = replication.fetchers
        self.settings = DynamicSettings(
            self.node.config, self.node.replicas.cleaner, self.fetchers, self.node.replicas.logs
        )

    def set(self, *, broker: str = "1", **texts: str | None) -> None:
        """Names have underscores in place of dots."""
        changes = ImageChanges()
        for name, text in texts.items():
            record = ConfigRecord(
                resource_type=BROKER_RESOURCE, resource_name=broker, name=name.replace("_", "."), value=text
            )
            changes.merge(self.node.image.replay(record, self.node.image.offset + 1))
        self.settings.apply(self.node.image, changes)

    def run(self, *tests: Callable[[], object]) -> None:
        """Take each step an hour after the one before."""

        async def within() -> None:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.node.replicas.run)
                nursery.start_soon(self.settings.run)
                for test in tests:
                    await trio.sleep(3600)
                    test()
                await trio.sleep(3600)
                nursery.cancel_scope.cancel()

        in_virtual_time(within)

    def compacted(self, *topics: str) -> None:
        for topic in topics:
            self.node.create_topic(topic, cleanup_policy="compact", segment_bytes="250")
            self.fill(topic)

    def fill(self, topic: str) -> None:
        for number in range(20):
            self.node.append(topic, b"%d" % number)

    def cleaned(self, topic: str) -> bool:
        return self.node.directories[0].cleaned_offset(TopicPartition(topic, 0)) is not None


def test_the_cleaner_looks_as_often_as_is_set_now(tmp_path: Path) -> None:
    world = World(tmp_path, {"log.cleaner.backoff.ms": str(10**9)})
    world.run(
        lambda: world.compacted("apples"),
        lambda: _assert(not world.cleaned("apples")),  # it rests for eleven days
        lambda: world.set(log_cleaner_backoff_ms="1000"),
        lambda: _assert(world.cleaned("apples")),
    )


def test_the_cleaner_has_as_many_tasks_as_are_set_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, {"log.cleaner.backoff.ms": "1000"})
    at_work: set[int] = set()
    begun: list[int] = []

    async def endless(number: int) -> bool:
        """A look at the logs takes a minute: so many at a time are under way."""
        at_work.add(number)
        begun.append(len(at_work))
        await trio.sleep(60)
        at_work.discard(number)
        return False

    numbers = iter(range(10**6))
    monkeypatch.setattr(world.node.replicas.cleaner, "clean_dirtiest", lambda workplace: endless(next(numbers)))

    def most(expected: int) -> Callable[[], None]:
        def look() -> None:
            assert max(begun[-20:]) == expected
            begun.clear()

        return look

    world.run(
        most(1),
        lambda: world.set(log_cleaner_threads="3"),
        begun.clear,
        most(3),
        lambda: world.set(log_cleaner_threads="2"),
        begun.clear,
        most(2),
        lambda: world.set(log_cleaner_threads=None),
        begun.clear,
        most(1),
    )


def test_each_task_of_the_cleaner_has_its_part_of_the_memory_that_is_set_now(tmp_path: Path) -> None:
    world = World(tmp_path, {"log.cleaner.dedupe.buffer.size": "1048576"})
    seen = []
    cleaner = world.node.replicas.cleaner
    world.run(
        lambda: world.set(broker="", log_cleaner_dedupe_buffer_size="4000000", log_cleaner_threads="2"),
        lambda: world.set(log_cleaner_io_buffer_load_factor="0.5"),
        lambda: seen.append(cleaner.task_config()),
    )
    (config,) = seen
    assert (config.memory_bytes, config.load_factor) == (2_000_000, 0.5)


@pytest.mark.parametrize(("text", "expected"), [("0", 0.01), ("-1", 0.01), ("9", 1.0), ("1e999", 1.0)])
def test_a_load_factor_without_sense_is_the_next_one_with_some(tmp_path: Path, text: str, expected: float) -> None:
    world = World(tmp_path)
    world.run(lambda: world.set(log_cleaner_io_buffer_load_factor=text))
    assert world.node.replicas.cleaner.task_config().load_factor == expected


def test_a_log_whose_keys_had_no_room_is_cleaned_when_there_is_more(tmp_path: Path) -> None:
    world = World(tmp_path, {"log.cleaner.backoff.ms": "1000", "log.cleaner.dedupe.buffer.size": "1"})

    def many_keys() -> None:
        world.node.create_topic("apples", cleanup_policy="compact", segment_bytes="1000000")
        partition = world.node.partition("apples")
        for segment in range(3):
            for batch in range(10):
                records = [Record(b"%d-%d-%d" % (segment, batch, each), b"v" * 300, timestamp=1) for each in range(100)]
                world.node.replicas.append(partition, encode_batch(records), world.node.clock.now_ms(), 1)
            partition.log.roll(world.node.clock.now_ms())

    world.run(
        many_keys,
        lambda: _assert(not world.cleaned("apples")),
        lambda: world.set(log_cleaner_dedupe_buffer_size="10000000"),
        lambda: _assert(world.cleaned("apples")),
    )


def test_cleaning_is_as_slow_as_is_set_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, {"log.cleaner.backoff.ms": "1000"})
    limits: list[float] = []
    monkeypatch.setattr(world.node.replicas.cleaner.throttle, "configure", limits.append)
    world.run(
        lambda: world.set(log_cleaner_io_max_bytes_per_second="1000"),
        lambda: world.set(log_cleaner_io_max_bytes_per_second=None),
    )
    assert limits == [1000.0, 1.7976931348623157e308]


def test_expired_producers_go_by_the_time_that_is_set_now(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.node.create_topic("apples")
    log = world.node.partition("apples").log

    def produce() -> None:
        record = Record(b"k", b"v", timestamp=world.node.clock.now_ms())
        data = encode_batch([record], producer_id=7, producer_epoch=0, base_sequence=0)
        world.node.replicas.append(world.node.partition("apples"), data, world.node.clock.now_ms(), 1)

    world.run(
        produce,
        lambda: _assert(list(log.producers.producers) == [7]),
        lambda: world.set(producer_id_expiration_ms="1000"),
        lambda: _assert(list(log.producers.producers) == []),
    )


def test_partitions_are_fetched_by_as_many_fetchers_as_are_set_now(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.node.create_topic("apples", 6, replicas=[2, 1], leader=2)
    counts = []
    world.run(
        lambda: counts.append(len(world.fetchers)),
        lambda: world.set(num_replica_fetchers="3"),
        lambda: counts.append(len(world.fetchers)),
        lambda: world.set(num_replica_fetchers="2"),
        lambda: counts.append(len(world.fetchers)),
        lambda: world.set(num_replica_fetchers=None),
        lambda: counts.append(len(world.fetchers)),
    )
    assert counts == [1, 3, 2, 1]


class CountingThreads(OnTheLoop):
    """Counts what is run in threads, by the name of the step."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    async def run(self, fn: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        self.steps.append(getattr(fn, "__name__", ""))
        return await super().run(fn, *args)


@pytest.mark.parametrize(("text", "expected"), [("3", 3), (None, 2), ("nonsense", 2), ("0", 2)])
def test_a_start_opens_logs_in_as_many_threads_as_are_set_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, expected: int
) -> None:
    node = ApiNode(tmp_path)
    node.create_topic("apples", 10)
    for directory in node.directories:
        directory.close()
    records = list(node.image.records())
    if text is not None:
        name = "num.recovery.threads.per.data.dir"
        records.append(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=name, value=text))
    node.image, changes = MetadataImage(), ImageChanges()
    node.start()
    threads = CountingThreads()
    monkeypatch.setattr(node.replicas.loading, "_threads", threads)
    for record in records:
        changes.merge(node.image.replay(record, node.image.offset + 1))
    trio.run(node.replicas.prepare, node.image, changes)
    assert threads.steps.count("_work_off") == expected


def test_a_setting_that_cannot_be_read_is_told_and_the_files_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, {"num.replica.fetchers": "2"})
    world.node.create_topic("apples", 6, replicas=[2, 1], leader=2)
    caplog.set_level(logging.ERROR, "pykbroker.server.node.dynamic_settings")
    world.run(lambda: world.set(num_replica_fetchers="many", log_cleaner_backoff_ms="-5"))
    assert len(world.fetchers) == 2
    assert len(caplog.records) == 2
    assert "num.replica.fetchers" in caplog.text


def _assert(holds: bool) -> None:
    assert holds
