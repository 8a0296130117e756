"""When a running node writes snapshots of its metadata, and what it lets go of then."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.protocol.messages.metadata_records import BeginTransactionRecord, EndTransactionRecord, TopicRecord
from pykbroker.protocol.schema import Message
from pykbroker.raft.snapshots import RetentionLimits, SnapshotSchedule
from pykbroker.server.quorum.metadata_log import MetadataLog
from pykbroker.server.quorum.snapshot_generator import CLEANING_INTERVAL_MS, SnapshotGenerator
from pykbroker.sim.clock import SimulatedClock
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.segments.log_config import LogConfig
from tests.server.gated_threads import GatedThreads

DIRECTORY = "/data/__cluster_metadata-0"
BETWEEN_BYTES = 1000
INTERVAL_MS = 3_600_000
DELETE_DELAY_MS = 30_000


class Scene:
    """A metadata log whose records are in the image at once, and the generator beside it."""

    def __init__(self, limits: RetentionLimits) -> None:
        self.disk = SimulatedDisk(Random(1))
        self.disk.make_directory("/data")
        self.clock = SimulatedClock()
        self.threads = GatedThreads()
        self.threads.open()
        config = LogConfig(segment_bytes=400, retention_bytes=-1, retention_ms=-1)
        self.log = MetadataLog.open(self.disk, DIRECTORY, config, clean_shutdown=False, now_ms=0)
        self.image = MetadataImage()
        self.generator = SnapshotGenerator(
            self.log,
            SnapshotSchedule(BETWEEN_BYTES, INTERVAL_MS, self.clock.monotonic_ms()),
            limits,
            delete_delay_ms=DELETE_DELAY_MS,
            clock=self.clock,
            threads=self.threads,
        )

    def commit(self, records: Sequence[Message]) -> None:
        base_offset = self.log.end_offset
        self.log.append_records(records, 1, self.clock.now_ms())
        self.log.flush()
        for batch in self.log.batches(base_offset, self.log.end_offset):
            for offset, record in batch.records:
                self.image.replay(record, offset)
            self.log.note_applied(batch)
        self.generator.apply(self.image, ImageChanges(others=True))

    async def create_topics(self, count: int) -> None:
        """About a hundred bytes each."""
        for _ in range(count):
            number = len(self.image.topics)
            self.commit([TopicRecord(name=f"topic-{number}", topic_id=number.to_bytes(16, "big"))])
            await wait_all_tasks_blocked()

    @property
    def snapshots(self) -> list[int]:
        return [snapshot_id.end_offset for snapshot_id in self.log.snapshots.ids]

    def files(self, suffix: str) -> list[str]:
        return [name for name in self.disk.list_directory(DIRECTORY) if name.endswith(suffix)]

    def image_on_disk(self) -> MetadataImage:
        log = MetadataLog.open(self.disk, DIRECTORY, LogConfig(), clean_shutdown=True, now_ms=0)
        image = MetadataImage()
        for offset, message in log.read():
            image.replay(message, offset)
        log.abandon()
        return image


@asynccontextmanager
async def running(limits: RetentionLimits) -> AsyncIterator[Scene]:
    async with trio.open_nursery() as nursery:
        scene = Scene(limits)
        nursery.start_soon(scene.generator.run)
        yield scene
        nursery.cancel_scope.cancel()


NO_LIMITS = RetentionLimits(max_bytes=-1, max_ms=-1)


def play(scenario: Callable[[Scene], Awaitable[None]], limits: RetentionLimits = NO_LIMITS) -> None:
    async def main() -> None:
        async with running(limits) as scene:
            await scenario(scene)

    trio.run(main, clock=MockClock(autojump_threshold=0.01))


def test_a_snapshot_is_written_whenever_there_are_records_enough() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create_topics(9)
        assert scene.snapshots == []
        await scene.create_topics(31)
        assert len(scene.snapshots) == 3
        assert scene.image_on_disk() == scene.image

    play(scenario)


def test_a_snapshot_is_written_after_an_hour_where_anything_is_new() -> None:
    async def scenario(scene: Scene) -> None:
        await trio.sleep(2 * INTERVAL_MS / 1000)
        assert scene.snapshots == []
        await scene.create_topics(1)
        assert scene.snapshots == [1]
        await trio.sleep(2 * INTERVAL_MS / 1000)
        assert scene.snapshots == [1]
        await scene.create_topics(1)
        assert scene.snapshots == [1, 2]
        await scene.create_topics(1)
        await trio.sleep(INTERVAL_MS / 1000 - 1)
        assert scene.snapshots == [1, 2]
        await trio.sleep(2)
        assert scene.snapshots == [1, 2, 3]

    play(scenario)


def test_a_snapshot_is_of_the_state_when_it_began_whatever_changes_meanwhile() -> None:
    async def scenario(scene: Scene) -> None:
        scene.threads.shut()
        await scene.create_topics(11)
        before = scene.image.offset + 1
        await scene.create_topics(20)
        scene.threads.open()
        await wait_all_tasks_blocked()
        (first, second) = scene.log.snapshots.ids
        assert first.end_offset <= before < second.end_offset
        assert len(scene.log.snapshots.read(first).messages) == first.end_offset
        assert scene.image_on_disk() == scene.image

    play(scenario)


def test_no_snapshot_divides_a_transaction() -> None:
    async def scenario(scene: Scene) -> None:
        scene.commit([BeginTransactionRecord()])
        await scene.create_topics(1)
        for number in range(1, 20):
            scene.commit([TopicRecord(name=f"topic-{number}", topic_id=number.to_bytes(16, "big"))])
        await wait_all_tasks_blocked()
        assert scene.snapshots == []
        scene.commit([EndTransactionRecord()])
        await wait_all_tasks_blocked()
        assert scene.snapshots == [22]

    play(scenario)


def test_log_and_snapshots_keep_to_their_size_and_one_snapshot_stays() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create_topics(60)
        assert len(scene.snapshots) == 1
        assert scene.log.size_bytes < 2 * BETWEEN_BYTES
        assert 0 < scene.log.start_offset <= scene.snapshots[0]
        assert len(scene.files(".deleted")) > 5
        assert scene.image_on_disk() == scene.image

    play(scenario, RetentionLimits(max_bytes=10, max_ms=-1))


def test_files_out_of_use_go_after_a_delay() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create_topics(60)
        assert scene.files(".deleted")
        await trio.sleep(DELETE_DELAY_MS / 1000 + 1)
        assert not scene.files(".deleted")

    play(scenario, RetentionLimits(max_bytes=10, max_ms=-1))


def test_snapshots_go_when_they_are_old_though_nothing_happens() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create_topics(25)
        assert len(scene.snapshots) == 2
        last = scene.snapshots[1]
        await trio.sleep(200)
        assert len(scene.snapshots) == 2
        await trio.sleep(400)
        assert scene.snapshots == [last]
        assert scene.image_on_disk() == scene.image

    play(scenario, RetentionLimits(max_bytes=-1, max_ms=500_000))


def test_a_full_disk_is_told_and_tried_again_a_minute_later(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create_topics(9)
        scene.disk.free_bytes = 200
        await scene.create_topics(1)
        with caplog.at_level(logging.ERROR):
            await scene.create_topics(1)
        assert scene.snapshots == []
        assert len(caplog.records) == 1
        assert "No space left" in caplog.text
        scene.disk.free_bytes = None
        await trio.sleep(CLEANING_INTERVAL_MS / 1000 + 1)
        assert scene.snapshots == [11]

    play(scenario)
