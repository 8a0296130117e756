"""Truncations of logs that are in use: what runs where, and who waits for whom."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from pykbroker.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord
from pykbroker.protocol.schema import Message
from pykbroker.server.logs.log_truncations import LogTruncations
from pykbroker.server.replicas.replica_fetcher import ReplicaFetchers
from pykbroker.storage.files.disk import OsDisk, OsDiskFile
from pykbroker.storage.log.log import Log
from tests.api.api_node import ApiNode, in_virtual_time
from tests.storage.batches import NOW_MS, batch, config, open_log


class HeldThreads:
    """A step waits until somebody lets it run."""

    def __init__(self) -> None:
        self.held: list[trio.Event] = []

    async def run(self, fn, *args):  # type: ignore[no-untyped-def]
        may_run = trio.Event()
        self.held.append(may_run)
        await may_run.wait()
        return fn(*args)

    async def let_one_run(self) -> None:
        await trio.testing.wait_all_tasks_blocked()
        self.held.pop(0).set()
        await trio.testing.wait_all_tasks_blocked()


class DivergingLeader:
    """Says once that its epoch 1 ends at offset 4, and then nothing more."""

    def __init__(self, topic_id: bytes) -> None:
        self._topic_id = topic_id
        self.asked: list[FetchRequest] = []

    async def request(self, node_id: int, request: Message, response_type: type, **options: object) -> FetchResponse:
        assert isinstance(request, FetchRequest)
        self.asked.append(request)
        if len(self.asked) > 1:
            await trio.sleep_forever()
        data = PartitionData(partition_index=0, diverging_epoch=EpochEndOffset(epoch=1, end_offset=4))
        topic = FetchableTopicResponse(topic_id=self._topic_id, partitions=[data])
        return FetchResponse(session_id=7, responses=[topic])

    async def close(self, node_id: int, purpose: str = "") -> None:
        await trio.lowlevel.checkpoint()


def following_node(path: Path) -> tuple[ApiNode, bytes, Log]:
    node = ApiNode(path, node_id=2)
    topic_id = node.create_topic("apples", 1, replicas=[1, 2], leader=1)
    log = node.partition("apples").log
    for epoch in (0, 1, 2):
        log.append_as_follower(batch(2, base_offset=log.log_end_offset, epoch=epoch))
    return node, topic_id, log


def test_a_partition_does_not_change_its_leader_while_its_log_is_truncated(tmp_path: Path) -> None:
    node, topic_id, log = following_node(tmp_path)
    leader, threads = DivergingLeader(topic_id), HeldThreads()
    node.replicas.truncations = LogTruncations(threads, node.replicas.failures.quarantine)
    fetchers = ReplicaFetchers(
        node.config,
        leader,
        flush=node.replicas.flush,
        truncate=node.replicas.truncations.run,
        clock=node.clock,
        on_disk_failure=lambda partition, failure: None,
    )
    node.replicas.replicate_with(fetchers)
    fetchers.applied(node.partition("apples"))
    seen: list[str] = []

    async def elect() -> None:
        record = PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=2)
        changes = node.image.replay(record, 0)
        await node.replicas.prepare(node.image, changes)
        seen.append(f"applied at {log.log_end_offset}")
        node.replicas.apply(node.image, changes)

    async def test() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetchers.run, lambda: 102)
            await trio.testing.wait_all_tasks_blocked()
            assert log.is_being_truncated
            nursery.start_soon(elect)
            await threads.let_one_run()
            assert (seen, log.log_end_offset, len(leader.asked)) == ([], 4, 1), "cut off, and not durable yet"
            await threads.let_one_run()
            assert seen == ["applied at 4"]
            assert not log.is_being_truncated
            nursery.cancel_scope.cancel()

    in_virtual_time(test)
    assert node.partition("apples").is_leader


def test_a_truncation_that_has_begun_comes_to_its_end_though_its_fetcher_is_stopped(tmp_path: Path) -> None:
    node, topic_id, log = following_node(tmp_path)
    threads = HeldThreads()
    fetchers = ReplicaFetchers(
        node.config,
        DivergingLeader(topic_id),
        flush=node.replicas.flush,
        truncate=LogTruncations(threads, node.replicas.failures.quarantine).run,
        clock=node.clock,
        on_disk_failure=lambda partition, failure: None,
    )
    fetchers.applied(node.partition("apples"))

    async def test() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetchers.run, lambda: 102)
            await trio.testing.wait_all_tasks_blocked()
            fetchers.removed(node.partition("apples"))
            await threads.let_one_run()
            await threads.let_one_run()
            assert (log.log_end_offset, log.is_being_truncated) == (4, False)
            nursery.cancel_scope.cancel()

    in_virtual_time(test)


def test_the_event_loops_part_of_a_truncation_neither_reads_a_log_nor_waits_for_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(OsDisk(), str(tmp_path / "t-0"), config(segment_bytes=1 << 20))
    template = batch(epoch=0)
    for first in range(0, 20_000, 1000):
        log.append_as_follower(
            b"".join(offset.to_bytes(8, "big") + template[8:] for offset in range(first, first + 1000))
        )
    log.flush()
    reads, syncs = [], []
    real_read, real_sync = OsDiskFile.read_at, OsDiskFile.sync
    monkeypatch.setattr(OsDiskFile, "read_at", lambda *args: (reads.append(args), real_read(*args))[1])
    monkeypatch.setattr(OsDiskFile, "sync", lambda *args: (syncs.append(args), real_sync(*args))[1])
    truncation = log.begin_truncation(19_000)
    assert truncation is not None
    assert (len(reads), len(syncs)) == (0, 0)
    truncation.prepare()
    assert reads
    reads.clear()
    syncs.clear()
    while not truncation.cut():
        pass
    assert (len(reads), len(syncs)) == (0, 0)
    assert log.log_end_offset == 19_000
    truncation.finish()
    assert syncs
    truncation.end()


def test_a_truncation_of_many_segments_shares_the_event_loop(tmp_path: Path) -> None:
    log = open_log(OsDisk(), str(tmp_path / "t-0"), config(segment_bytes=len(batch())))
    for _ in range(100):
        log.append_as_leader(batch(), 0, NOW_MS)
    names = {path.name for path in (tmp_path / "t-0").glob("*.log")}
    assert len(names) == 100
    for truncation, end in ((log.begin_truncation(1), 1), (log.begin_anew(7, now_ms=NOW_MS), 7)):
        assert truncation is not None
        truncation.prepare()
        ends = []
        while not truncation.cut():
            ends.append(log.log_end_offset)
        assert log.log_end_offset == end
        if end == 1:
            assert ends == [68, 36, 4], "a shorter log at each step"
        truncation.finish()
        truncation.end()
    assert [path.name for path in (tmp_path / "t-0").glob("*.log*")] == ["00000000000000000007.log"]


def test_what_is_old_stays_while_a_thread_reads_it_for_a_truncation(tmp_path: Path) -> None:
    log = open_log(OsDisk(), str(tmp_path / "t-0"), config(segment_bytes=len(batch()), retention_ms=1))
    for _ in range(5):
        log.append_as_leader(batch(), 0, NOW_MS)
    truncation = log.begin_truncation(4)
    assert truncation is not None
    assert log.delete_old_segments(4, NOW_MS + 1_000_000) == []
    truncation.run()
    assert log.delete_old_segments(4, NOW_MS + 1_000_000)


def test_a_log_that_is_deleted_during_its_truncation_is_left_alone(tmp_path: Path) -> None:
    """Another log may have its path by then."""
    log = open_log(OsDisk(), str(tmp_path / "t-0"))
    for epoch in range(5):
        log.append_as_leader(batch(), epoch, NOW_MS)
    log.flush()
    truncation = log.begin_truncation(2)
    assert truncation is not None
    epochs = (tmp_path / "t-0" / "leader-epoch-checkpoint").read_bytes()
    log.abandon()
    truncation.run()
    assert (tmp_path / "t-0" / "leader-epoch-checkpoint").read_bytes() == epochs
