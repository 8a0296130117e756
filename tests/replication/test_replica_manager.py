"""How a node's replicas follow the metadata, and what happens to their logs by time and when a disk fails."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from pykbroker.metadata.image import BROKER_RESOURCE
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.metadata_records import ConfigRecord
from pykbroker.replication.partition import Partition
from pykbroker.storage.files.errors import CorruptLog, DiskFailed, NoRoom
from pykbroker.storage.log.log import Log
from tests.api.api_node import ApiNode, batch, in_virtual_time


@pytest.fixture
def node(tmp_path: Path) -> ApiNode:
    return ApiNode(tmp_path)


def directories(node: ApiNode, name: str = "data") -> list[str]:
    """The partitions' directories; what is deleted or put aside without the random part of its name."""
    names = [each.name for each in (node.path / name).iterdir() if each.is_dir()]
    return sorted(f"{name.split('.')[0]}.*-{name.rpartition('-')[2]}" if "." in name else name for name in names)


def while_running(node: ApiNode, test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(node.replicas.run)
            await test()
            nursery.cancel_scope.cancel()

    in_virtual_time(run)


# Following the metadata


def test_a_new_topic_gets_a_log_for_each_partition_with_its_id(node: ApiNode) -> None:
    topic_id = node.create_topic("apples", 2)
    assert directories(node) == ["apples-0", "apples-1"]
    for index in range(2):
        partition = node.partition("apples", index)
        assert partition.is_leader
        assert node.replicas.get_partition_by_id(topic_id, index) is partition
        assert "topic_id: " in (node.path / f"data/apples-{index}/partition.metadata").read_text()


def test_replicas_of_other_nodes_are_not_here(node: ApiNode) -> None:
    topic_id = node.create_topic("apples", replicas=[2, 3], leader=2)
    assert directories(node) == []
    assert node.replicas.get_partition("apples", 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.replicas.get_partition_by_id(topic_id, 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.replicas.get_partition("apples", 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.replicas.get_partition_by_id(topic_id, 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.replicas.get_partition_by_id(b"?" * 16, 0) is ErrorCode.UNKNOWN_TOPIC_ID


def test_a_replica_that_is_moved_away_is_removed_here(node: ApiNode) -> None:
    node.create_topic("apples", replicas=[1, 2], leader=1)
    node.change_partition("apples", 0, replicas=[2], isr=[2], leader=2)
    assert directories(node) == ["apples-0.*-delete"]
    assert node.replicas.get_partition("apples", 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_live_logs_take_new_configs(node: ApiNode) -> None:
    node.create_topic("apples", max_message_bytes="1000")
    node.create_topic("beets")
    log = node.partition("apples").log
    node.configure_topic("apples", max_message_bytes="2000")
    assert log.config.max_message_bytes == 2000
    node.replay(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name="message.max.bytes", value="3000"))
    assert node.partition("beets").log.config.max_message_bytes == 3000
    assert log.config.max_message_bytes == 2000, "the topic's own value wins"


class Coordinator:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_election(self, partition: Partition) -> None:
        self.seen.append(f"elected {partition.index} epoch {partition.leader_epoch}")

    def on_resignation(self, index: int) -> None:
        self.seen.append(f"resigned {index}")


def test_a_coordinator_learns_what_it_leads(node: ApiNode) -> None:
    coordinator = Coordinator()
    node.replicas.subscribe("apples", coordinator)
    node.create_topic("apples", replicas=[1, 2], leader=1)
    node.create_topic("beets")
    node.change_partition("apples", 0, isr=[1])
    node.change_partition("apples", 0, leader=1)
    node.change_partition("apples", 0, leader=2)
    node.change_partition("apples", 0, leader=1)
    node.delete_topic("apples")
    expected = ["elected 0 epoch 0", "elected 0 epoch 1", "resigned 0", "elected 0 epoch 3", "resigned 0"]
    assert coordinator.seen == expected


def test_a_coordinator_that_comes_late_learns_what_it_leads_already(node: ApiNode) -> None:
    node.create_topic("apples", 2)
    coordinator = Coordinator()
    node.replicas.subscribe("apples", coordinator)
    assert coordinator.seen == ["elected 0 epoch 0", "elected 1 epoch 0"]


# Deletion


def test_a_deleted_topic_is_put_out_of_use_at_once_and_removed_later(node: ApiNode) -> None:
    async def run() -> None:
        node.create_topic("apples", 2, file_delete_delay_ms="1000")
        node.create_topic("kept")
        await trio.sleep(0.5)
        node.delete_topic("apples")
        assert node.replicas.get_partition("apples", 0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert directories(node) == ["apples-0.*-delete", "apples-1.*-delete", "kept-0"]
        await trio.sleep(0.9)
        assert len(directories(node)) == 3
        await trio.sleep(0.2)
        assert directories(node) == ["kept-0"]

    while_running(node, run)


def test_a_topic_with_the_name_of_a_deleted_one_begins_anew(node: ApiNode) -> None:
    old_id = node.create_topic("apples")
    node.append("apples", b"old")
    node.delete_topic("apples")
    new_id = node.create_topic("apples")
    assert node.partition("apples").log.log_end_offset == 0
    assert node.replicas.get_partition_by_id(old_id, 0) is ErrorCode.UNKNOWN_TOPIC_ID
    assert node.replicas.get_fetched_partition("apples", old_id, 0) is ErrorCode.INCONSISTENT_TOPIC_ID
    assert node.replicas.get_fetched_partition("apples", new_id, 0) is node.partition("apples")


def test_what_an_earlier_run_left_deleted_is_removed(node: ApiNode) -> None:
    node.create_topic("apples")
    node.delete_topic("apples")
    node.restart(clean=False)

    async def run() -> None:
        await trio.sleep(0.1)
        assert directories(node) == []

    while_running(node, run)


def test_a_partition_of_no_topic_is_put_aside_and_kept(node: ApiNode) -> None:
    node.create_topic("apples")
    node.append("apples", b"a")
    node.close()
    forgotten = ApiNode.__new__(ApiNode)
    forgotten.__dict__.update(node.__dict__)
    forgotten.image = type(node.image)()
    forgotten.start()
    forgotten.replay()
    assert directories(forgotten) == ["apples-0.*-stray"]


# By time


def checkpoint(node: ApiNode, name: str) -> list[str]:
    path = node.path / "data" / name
    return path.read_text().splitlines()[2:] if path.exists() else []


def test_high_watermarks_are_checkpointed(node: ApiNode) -> None:
    async def run() -> None:
        node.create_topic("apples", 2)
        node.append("apples", b"a", b"b", index=1)
        await trio.sleep(4.9)
        assert checkpoint(node, "replication-offset-checkpoint") == []
        await trio.sleep(0.2)
        assert checkpoint(node, "replication-offset-checkpoint") == ["apples 0 0", "apples 1 2"]

    while_running(node, run)


def test_a_follower_starts_with_its_checkpointed_high_watermark(node: ApiNode) -> None:
    node.create_topic("apples", replicas=[1, 2], leader=1)
    node.append("apples", b"a", b"b", b"c")
    node.partition("apples").read_as_replica(2, 2, 1000, now_ms=0)

    async def run() -> None:
        await node.replicas.checkpoint()

    in_virtual_time(run)
    node.change_partition("apples", 0, leader=2)
    node.restart()
    partition = node.partition("apples")
    assert (partition.is_leader, partition.high_watermark, partition.log.log_end_offset) == (False, 2, 3)


def test_flush_ms_flushes_a_log_after_that_time(node: ApiNode) -> None:
    async def run() -> None:
        node.create_topic("apples", flush_ms="1000")
        node.create_topic("beets")
        await trio.sleep(0.1)
        for topic in ("apples", "beets"):
            node.append(topic, b"a")
        await trio.sleep(0.1)
        for topic in ("apples", "beets"):
            assert node.partition(topic).log.recovery_point == 1, "a log that begins is flushed once"
            node.append(topic, b"b")
        assert node.partition("apples").log.recovery_point == 1
        await trio.sleep(2)
        assert node.partition("apples").log.recovery_point == 2
        assert node.partition("beets").log.recovery_point == 1, "by default the operating system decides"

    while_running(node, run)


async def readable(partition: Partition, end_offset: int) -> None:
    with trio.fail_after(60):
        while partition.high_watermark < end_offset:  # noqa: ASYNC110 - what is waited for has no event
            await trio.sleep(0.01)


def test_a_new_leader_flushes_what_it_never_did_before_it_is_read(node: ApiNode) -> None:
    async def test() -> None:
        node.create_topic("apples", replicas=[2, 1], leader=2, flush_messages="1")
        partition = node.partition("apples")
        partition.append_as_follower(batch(b"a", b"b"))
        node.change_partition("apples", 0, leader=1, isr=[1])
        assert (partition.high_watermark, partition.log.recovery_point) == (0, 0)
        await readable(partition, 2)
        assert partition.log.recovery_point == 2

    while_running(node, test)


def test_what_is_to_be_flushed_is_flushed_though_nobody_waits_for_it(node: ApiNode) -> None:
    """Its producer has left, or it is a coordinator that owes nobody an answer; readers wait."""

    async def test() -> None:
        node.create_topic("apples", flush_messages="2")
        partition = node.partition("apples")
        for end_offset in (2, 4):
            node.append("apples", b"a", b"b")
            await readable(partition, end_offset)

    while_running(node, test)


def test_what_is_to_be_flushed_from_now_on_is_flushed_now(node: ApiNode) -> None:
    async def test() -> None:
        node.create_topic("apples", replicas=[1, 2])
        partition = node.partition("apples")
        node.append("apples", b"a")
        await trio.sleep(1)
        node.append("apples", b"b")
        node.configure_topic("apples", flush_messages="1")
        partition.read_as_replica(2, 2, 1000, now_ms=0)
        assert partition.high_watermark == 1
        await readable(partition, 2)

    while_running(node, test)


def test_a_disk_that_has_no_room_for_a_moment_does_not_hold_readers_up_for_ever(
    node: ApiNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush, refusals = Log.flush, [NoRoom("fsync", "/full", OSError(errno.ENOSPC, "no room"))] * 3

    def flush_later(self: Log) -> None:
        if refusals:
            raise refusals.pop()
        flush(self)

    async def test() -> None:
        monkeypatch.setattr(Log, "flush", flush_later)
        node.create_topic("apples", flush_messages="1")
        node.append("apples", b"a")
        await readable(node.partition("apples"), 1)
        assert not refusals

    while_running(node, test)


def test_many_logs_that_are_due_share_few_threads(node: ApiNode) -> None:
    count = 0
    run = node.threads.run

    async def counted(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        return await run(*arguments)

    async def test() -> None:
        node.threads.run = counted  # type: ignore[method-assign]
        for index in range(80):
            node.append("apples", b"a", index=index)
        for index in range(80):
            await readable(node.partition("apples", index), 1)
        assert count <= 20

    node.create_topic("apples", 80, flush_messages="1")
    while_running(node, test)


def test_full_segments_are_flushed_and_recovery_points_checkpointed(node: ApiNode) -> None:
    async def run() -> None:
        node.create_topic("apples", segment_bytes=str(1 << 20))
        for _ in range(3):
            node.append("apples", bytes(700_000))
        assert len(node.partition("apples").log.segments) == 3
        await trio.sleep(61)
        assert node.partition("apples").log.recovery_point == 3
        assert checkpoint(node, "recovery-point-offset-checkpoint") == ["apples 0 3"]

    while_running(node, run)


def log_files(node: ApiNode, topic: str) -> list[str]:
    return sorted(path.name for path in (node.path / f"data/{topic}-0").iterdir() if ".log" in path.name)


def test_old_segments_go_by_time_and_their_files_after_a_delay(tmp_path: Path) -> None:
    node = ApiNode(tmp_path, {"log.retention.check.interval.ms": "10000", "log.segment.delete.delay.ms": "3000"})

    async def run() -> None:
        node.create_topic("apples", retention_ms="60000", segment_bytes=str(1 << 20))
        node.create_topic("compacted", retention_ms="60000", cleanup_policy="compact")
        for topic in ("apples", "compacted"):
            node.append(topic, bytes(700_000), timestamp=node.clock.now_ms())
        await trio.sleep(35)
        node.append("apples", bytes(700_000), timestamp=node.clock.now_ms())
        old, new = "00000000000000000000.log", "00000000000000000001.log"
        await trio.sleep(20)
        assert log_files(node, "apples") == [old, new]
        await trio.sleep(16)
        assert log_files(node, "apples") == [f"{old}.deleted", new]
        assert node.partition("apples").log.log_start_offset == 1
        await trio.sleep(3)
        assert log_files(node, "apples") == [new]
        await trio.sleep(60)
        assert log_files(node, "apples") == ["00000000000000000002.log"], "the active segment is rolled"
        assert log_files(node, "compacted") == [old]

    while_running(node, run)


def test_retention_waits_for_the_high_watermark(tmp_path: Path) -> None:
    node = ApiNode(tmp_path, {"log.retention.check.interval.ms": "1000"})

    async def run() -> None:
        node.create_topic("apples", replicas=[1, 2], leader=1, retention_ms="0")
        node.append("apples", b"a")
        await trio.sleep(2)
        assert node.partition("apples").log.log_start_offset == 0
        node.partition("apples").read_as_replica(2, 1, 1000, now_ms=0)
        await trio.sleep(2)
        assert node.partition("apples").log.log_start_offset == 1

    while_running(node, run)


def two_directories(path: Path) -> dict[str, str]:
    """For partitions alone, so that the node can do without either."""
    return {"log.dirs": f"{path}/one,{path}/two", "metadata.log.dir": f"{path}/metadata"}


def test_a_disk_that_fails_in_retention_goes_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = ApiNode(tmp_path, {**two_directories(tmp_path), "log.retention.check.interval.ms": "1000"})
    node.create_topic("apples", 2, retention_ms="0")

    def fail(*_: object) -> None:
        raise DiskFailed("rename", "", OSError(5, "Input/output error"))

    monkeypatch.setattr(node.partition("apples", 0).log, "put_old_segments_aside", fail)
    node.append("apples", b"a", index=1)

    async def run() -> None:
        await trio.sleep(2)
        assert node.replicas.get_partition("apples", 0) is ErrorCode.KAFKA_STORAGE_ERROR
        assert node.partition("apples", 1).log.log_start_offset == 1

    while_running(node, run)


def test_nothing_wakes_up_where_nothing_is_due(node: ApiNode) -> None:
    node.create_topic("apples")

    class Steps(trio.abc.Instrument):
        count = 0

        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            self.count += 1

    async def run() -> None:
        steps = Steps()
        await trio.sleep(0.1)
        trio.lowlevel.add_instrument(steps)
        await trio.sleep(4.8)
        trio.lowlevel.remove_instrument(steps)
        assert steps.count <= 1, "this test's own"

    while_running(node, run)


# Failing disks


def break_disk(monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DiskFailed("write", log.directory, OSError(5, "Input/output error"))

    monkeypatch.setattr(log, "append_as_leader", fail)


def append_to_broken_disk(node: ApiNode, partition: Partition) -> None:
    with pytest.raises(ApiError) as refused:
        node.replicas.append(partition, batch(b"a"), 0, 1)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_failed_disk_takes_its_directory_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = ApiNode(tmp_path, two_directories(tmp_path))
    node.create_topic("apples", 2)
    assert (directories(node, "one"), directories(node, "two")) == (["apples-0"], ["apples-1"]), "evenly"
    coordinator = Coordinator()
    node.replicas.subscribe("apples", coordinator)
    broken = node.partition("apples", 0)
    break_disk(monkeypatch, broken.log)

    async def run() -> None:
        append_to_broken_disk(node, broken)
        assert node.replicas.get_partition("apples", 0) is ErrorCode.KAFKA_STORAGE_ERROR
        assert node.replicas.append(node.partition("apples", 1), batch(b"a"), 0, 1).first_offset == 0
        assert coordinator.seen[-1] == "resigned 0"
        await trio.sleep(120)
        assert checkpoint_of(tmp_path / "two") == ["apples 1 1"]
        assert checkpoint_of(tmp_path / "one") == [], "nothing is written there any more"

    while_running(node, run)


def checkpoint_of(path: Path) -> list[str]:
    file = path / "replication-offset-checkpoint"
    return file.read_text().splitlines()[2:] if file.exists() else []


def no_room(path: str) -> NoRoom:
    return NoRoom("rename", f"{path}/x", OSError(errno.ENOSPC, "No space left on device"))


def test_a_full_disk_keeps_its_directory_online_and_retention_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = ApiNode(tmp_path, {**two_directories(tmp_path), "log.retention.check.interval.ms": "1000"})
    node.create_topic("apples", 2, retention_ms="0")
    partition = node.partition("apples", 0)
    delete, refusals = partition.log.put_old_segments_aside, [no_room(partition.log.directory)] * 2

    def delete_later(high_watermark: int, now_ms: int) -> list[str]:
        if refusals:
            raise refusals.pop()
        return delete(high_watermark, now_ms)

    monkeypatch.setattr(partition.log, "put_old_segments_aside", delete_later)
    node.append("apples", b"a")

    async def run() -> None:
        await trio.sleep(4)
        assert node.partition("apples", 0) is partition
        assert partition.log.log_start_offset == 1
        assert not refusals

    while_running(node, run)


@pytest.mark.parametrize("step", ["delete", "put_strays_aside", "delete_damaged"])
def test_a_deletion_that_finds_no_room_keeps_the_directory_online(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = ApiNode(tmp_path, two_directories(tmp_path))
    monkeypatch.setattr(node.replicas.logs, step, lambda *_: (_ for _ in ()).throw(no_room(f"{tmp_path}/one")))
    node.create_topic("apples", 2)
    if step == "delete_damaged":
        node.replicas.quarantine(node.partition("apples", 0), CorruptLog("damaged"))
    node.delete_topic("apples")
    node.create_topic("beets", 2)
    for index in (0, 1):
        node.append("beets", b"a", index=index)
    assert list(node.replicas.log_directories().values()).count(None) == 0


def test_without_a_directory_the_node_cannot_go_on(node: ApiNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.create_topic("apples")
    broken = node.partition("apples")
    break_disk(monkeypatch, broken.log)

    async def run() -> None:
        append_to_broken_disk(node, broken)
        await trio.sleep_forever()

    with pytest.RaisesGroup(DiskFailed, flatten_subgroups=True):
        while_running(node, run)


def test_without_the_directory_of_the_metadata_log_the_node_cannot_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = ApiNode(tmp_path, {"log.dirs": f"{tmp_path}/one,{tmp_path}/two", "metadata.log.dir": f"{tmp_path}/two"})
    node.create_topic("apples", 2)
    broken = node.partition("apples", 1)
    break_disk(monkeypatch, broken.log)

    async def run() -> None:
        append_to_broken_disk(node, broken)
        await trio.sleep_forever()

    with pytest.RaisesGroup(DiskFailed, flatten_subgroups=True):
        while_running(node, run)


def test_the_directory_that_the_controller_assigned_is_used(tmp_path: Path) -> None:
    node = ApiNode(tmp_path, {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"})
    wanted = node.directories[1].directory_id
    node.create_topic("apples", 3, directory=wanted)
    assert directories(node, "two") == ["apples-0", "apples-1", "apples-2"]
    node.restart()
    assert node.partition("apples", 2).log.directory == f"{tmp_path}/two/apples-2"
