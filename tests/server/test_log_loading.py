"""What a node found at its start is opened in threads, before anything is led: all of it, or what a stop leaves."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata_records import PartitionRecord, RemoveTopicRecord, TopicRecord
from pykbroker.server.logs.hosted_logs import HostedLogs
from pykbroker.server.logs.log_loading import LoadProgress, LogLoading, LogToOpen, OnLoading
from pykbroker.server.runtime.threads import OnTheLoop, Threads, WorkerThreads
from pykbroker.storage.directories.log_dirs import LogDirectory, format_directory
from pykbroker.storage.files.disk import Disk, OsDisk, OsDiskFile
from pykbroker.storage.log.log import Log, LogConfig
from tests.api.api_node import ApiNode, VirtualClock, batch

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def restarted(node: ApiNode, *, clean: bool) -> tuple[MetadataImage, ImageChanges]:
    """The node's directories are open again, and this is what its metadata log tells."""
    for directory in node.directories:
        directory.close() if clean else directory.release()
    records = list(node.image.records())
    node.image, changes = MetadataImage(), ImageChanges()
    node.start()
    for record in records:
        changes.merge(node.image.replay(record, node.image.offset + 1))
    return node.image, changes


def load(node: ApiNode, *, clean: bool) -> ImageChanges:
    image, changes = restarted(node, clean=clean)
    trio.run(node.replicas.prepare, image, changes)
    return changes


def opened(node: ApiNode) -> set[str]:
    return {str(at) for directory in node.directories for at in directory.logs}


@pytest.fixture
def node(tmp_path: Path) -> ApiNode:
    node = ApiNode(tmp_path, {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"})
    node.create_topic("apples", 4, retention_ms="7")
    for index in range(4):
        node.append("apples", b"a" * 100, b"b" * 100, index=index)
    return node


@pytest.mark.parametrize("clean", [True, False])
def test_what_was_found_is_open_before_it_is_led(node: ApiNode, clean: bool) -> None:
    changes = load(node, clean=clean)
    assert opened(node) == {f"apples-{index}" for index in range(4)}
    assert list(node.replicas.partitions()) == []
    logs = {log.directory: log for log in node.replicas.logs}
    node.replicas.apply(node.image, changes)
    for index in range(4):
        partition = node.partition("apples", index)
        assert partition.log is logs[partition.log.directory]
        assert partition.is_leader
        assert partition.log.log_end_offset == 2
        assert partition.log.config.retention_ms == 7


def test_what_readers_saw_before_a_start_is_durable_and_seen_as_soon_as_it_is_led(tmp_path: Path) -> None:
    """With `flush.messages` the high watermark waits for the disk; it must not wait when the first reader comes."""
    node = ApiNode(tmp_path)
    node.create_topic("pears", flush_messages="1")
    node.append("pears", b"a", b"b")
    changes = load(node, clean=False)
    node.replicas.apply(node.image, changes)
    partition = node.partition("pears")
    assert partition.high_watermark == partition.log.recovery_point == 2


def test_one_bad_log_leaves_the_others_in_service(node: ApiNode) -> None:
    path = Path(node.partition("apples", 2).log.directory) / f"{0:020d}.log"
    image, changes = restarted(node, clean=True)
    path.write_bytes(b"")
    trio.run(node.replicas.prepare, image, changes)
    node.replicas.apply(image, changes)
    assert [node.partition("apples", index).log.log_end_offset for index in (0, 1, 3)] == [2, 2, 2]
    assert node.replicas.get_partition("apples", 2) is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_directory_of_a_topic_that_is_gone_is_not_opened(node: ApiNode) -> None:
    image, _ = restarted(node, clean=False)
    namesake, changes = MetadataImage(), ImageChanges()
    for record in image.records():
        if isinstance(record, TopicRecord | PartitionRecord):
            record.topic_id = b"another topic id"
        changes.merge(namesake.replay(record, namesake.offset + 1))
    trio.run(node.replicas.prepare, namesake, changes)
    assert opened(node) == set()
    node.replicas.apply(namesake, changes)
    assert [node.partition("apples", index).log.log_end_offset for index in range(4)] == [0, 0, 0, 0]
    assert len(list(node.path.glob("*/*-stray"))) == 4


# Later


def created(node: ApiNode, name: str, partitions: int) -> ImageChanges:
    """The image has a new topic that nobody has heard of."""
    changes, topic_id = ImageChanges(), name.encode().ljust(16)
    for record in (
        TopicRecord(name=name, topic_id=topic_id),
        *(
            PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], leader=1)
            for index in range(partitions)
        ),
    ):
        changes.merge(node.image.replay(record, node.image.offset + 1))
    return changes


def test_new_logs_are_made_in_threads_where_they_would_have_been_without(node: ApiNode) -> None:
    changes = created(node, "beets", 5)
    trio.run(node.replicas.prepare, node.image, changes)
    made = opened(node)
    assert made >= {f"beets-{index}" for index in range(5)}
    node.replicas.apply(node.image, changes)
    node.create_topic("carrots", 5)
    for topic in ("beets", "carrots"):
        directories = [Path(node.partition(topic, index).log.directory).parent.name for index in range(5)]
        assert sorted(directories, key=["one", "two"].index)[2:3] == [directories[0]]
        assert {directories.count("one"), directories.count("two")} == {2, 3}


def test_a_topic_that_takes_the_name_of_another_is_made_when_that_is_gone(node: ApiNode) -> None:
    namesake_id = b"another topic id"
    changes = ImageChanges()
    for record in (
        RemoveTopicRecord(topic_id=node.image.topics["apples"].topic_id),
        TopicRecord(name="apples", topic_id=namesake_id),
        PartitionRecord(partition_id=0, topic_id=namesake_id, replicas=[1], isr=[1], leader=1),
    ):
        changes.merge(node.image.replay(record, node.image.offset + 1))
    before = node.partition("apples", 0).log
    trio.run(node.replicas.prepare, node.image, changes)
    assert before.is_closed
    node.replicas.apply(node.image, changes)
    assert node.partition("apples", 0).log is not before
    assert node.partition("apples", 0).log.log_end_offset == 0


def test_a_directory_that_fails_meanwhile_takes_what_was_prepared_with_it(node: ApiNode) -> None:
    changes = created(node, "beets", 4)
    trio.run(node.replicas.prepare, node.image, changes)
    node.replicas.logs.take_offline(node.directories[0])
    node.replicas.apply(node.image, changes)
    for index in range(4):
        log = node.partition("beets", index).log
        assert not log.is_closed
        assert Path(log.directory).parent.name == "two"


# Stopping, and what is said meanwhile

TOPIC_ID = b"0123456789abcdef"
COUNT = 6


def open_directory(path: Path, disk: Disk) -> LogDirectory:
    return LogDirectory.open(disk, str(path / "logs"), rng=random.Random(1), node_id=1)


def open_log(directory: LogDirectory, index: int) -> Log:
    return directory.open_log("apples", index, TOPIC_ID, LogConfig(), now_ms=0)


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """A directory of logs that nobody closed; each has as many batches as its number says."""
    format_directory(OsDisk(), str(tmp_path / "logs"), cluster_id="test", node_id=1, rng=random.Random(1))
    directory = open_directory(tmp_path, OsDisk())
    for index in range(COUNT):
        log = open_log(directory, index)
        for _ in range(index):
            log.append_as_leader(batch(b"a" * 100_000), 0, 1000)
    directory.release()
    return tmp_path


def loading(
    directory: LogDirectory, threads: Threads, *, workers: int = 2, on_loading: OnLoading | None = None
) -> tuple[LogLoading, list[LogToOpen]]:
    clock = VirtualClock()
    logs = HostedLogs([directory], clock=clock, producer_id_expiration_ms=1000)
    found = [LogToOpen(directory, at, TOPIC_ID, LogConfig()) for at in sorted(directory.found)]
    return LogLoading(logs, clock=clock, threads=threads, threads_per_directory=workers, on_loading=on_loading), found


class SlowDisk(OsDisk):
    """Opening a segment waits until the test lets it."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()

    def open(self, path: str, *, create: bool = False) -> OsDiskFile:
        if path.endswith(".log"):
            self.has_begun.set()
            assert self.may_go_on.wait(10)
        return super().open(path, create=create)


def test_a_stop_ends_recovery_where_it_is(crashed: Path) -> None:
    disk = SlowDisk()
    directory = open_directory(crashed, disk)
    loader, found = loading(directory, WorkerThreads())

    async def stop_in_the_middle() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(loader.load, found)
            await trio.to_thread.run_sync(disk.has_begun.wait, 10)
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await wait_all_tasks_blocked()
            disk.may_go_on.set()

    trio.run(stop_in_the_middle)
    assert len(directory.logs) < COUNT
    directory.release()
    directory = open_directory(crashed, OsDisk())
    assert not directory.was_clean_shutdown
    assert [open_log(directory, index).log_end_offset for index in range(COUNT)] == list(range(COUNT))
    directory.release()


class PausingThreads(OnTheLoop):
    """Each piece of work takes three seconds before it begins."""

    async def run(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        await trio.sleep(3)
        return await super().run(fn, *args)


def test_a_long_start_says_how_far_it_is(crashed: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = open_directory(crashed, OsDisk())
    loader, found = loading(directory, PausingThreads())
    with caplog.at_level(logging.INFO):
        trio.run(loader.load, found, clock=MockClock(autojump_threshold=0))
    directory.release()
    assert [record.getMessage() for record in caplog.records] == [
        "opened 0 of 6 logs, 0 MB checked, 2 MB to check",
        "opened 6 of 6 logs, 2 MB checked, 0 MB to check after 3.0 s",
    ]


def test_who_watches_is_told_every_moment_and_at_the_end(crashed: Path, caplog: pytest.LogCaptureFixture) -> None:
    told: list[LoadProgress] = []
    directory = open_directory(crashed, OsDisk())
    loader, found = loading(directory, PausingThreads(), on_loading=told.append)
    trio.run(loader.load, found, clock=MockClock(autojump_threshold=0))
    directory.release()
    assert told[0] == LoadProgress(logs=COUNT, logs_opened=0, bytes_to_check=told[-1].bytes_checked, bytes_checked=0)
    assert told[-1].is_done
    assert told[-1].bytes_checked == told[-1].bytes_to_check > 1_500_000
    assert len(told) > 10


def test_a_short_start_says_nothing(crashed: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = open_directory(crashed, OsDisk())
    loader, found = loading(directory, WorkerThreads())
    with caplog.at_level(logging.INFO):
        trio.run(loader.load, found)
    assert len(directory.logs) == COUNT
    directory.release()
    assert caplog.records == []
