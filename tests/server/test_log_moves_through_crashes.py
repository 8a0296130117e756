"""A replica that moves between two log directories while it is written to, and a crash at every operation of its disk:
a start finds in one of the two what was promised to anybody.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import NamedTuple, cast

import pytest
import trio

from pykbroker.api.delete_records import delete_records
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.server.logs.hosted_logs import HostedLogs
from pykbroker.server.replicas.directory_assignments import DirectoryAssignments
from pykbroker.server.replicas.log_moves import LogMoves
from pykbroker.storage.directories.log_dirs import LogDirectory
from pykbroker.storage.log.log import LogConfig
from tests.api.api_node import ApiNode, VirtualClock, in_virtual_time
from tests.storage.batches import read_all
from tests.storage.crash_states import Choice, Survivors
from tests.storage.recording_disk import RecordingDisk

from .serving import eventually

APPLES = TopicPartition("apples", 0)
RECORDS = 60
RANDOM_CHOICES = 4
SEGMENT_BYTES = 500


class Promise(NamedTuple):
    """Of the log, from one operation of the disk on. flushed_end: what nothing takes, a power cut included.
    must_start: records in front of it were deleted, and stay so. may_start: they may be. assigned: the log directories
    that the controller may know the replica in.
    """

    at: int
    appended_end: int = 0
    flushed_end: int = 0
    may_start: int = 0
    must_start: int = 0
    assigned: frozenset[bytes] = frozenset()


class Run:
    """What happens to the partition, and what of it is promised."""

    def __init__(self, seed: int) -> None:
        self.disk = RecordingDisk()
        self.rng = Random(seed)
        # Both directories are read in an order that does not depend on the seed.
        properties = {"log.dirs": "/data/one,/data/two", "log.flush.offset.checkpoint.interval.ms": "50"}
        self.node = ApiNode(Path("/data"), properties, disk=self.disk)
        self.config = self.node.config
        self.promises = [Promise(0)]

    @property
    def now(self) -> Promise:
        return self.promises[-1]

    def promise(self, **changes: object) -> None:
        self.promises.append(self.now._replace(at=len(self.disk.journal), **changes))  # type: ignore[arg-type]

    def play(self) -> None:
        in_virtual_time(self._play)
        self.topic_id = self.node.image.topics["apples"].topic_id

    async def _play(self) -> None:
        node = self.node
        node.create_topic("apples", flush_messages="1", segment_bytes=str(SEGMENT_BYTES), file_delete_delay_ms="20")
        (here,) = (each for each in node.directories if APPLES in each.logs)
        self.promise(assigned=frozenset([here.directory_id]))
        moves = LogMoves(
            node.replicas, cast(DirectoryAssignments, self), most_at_once=2, clock=node.clock, threads=node.threads
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(node.replicas.run)
            await nursery.start(moves.run)
            nursery.start_soon(self._watch)
            async with trio.open_nursery() as clients:
                clients.start_soon(self._produce)
                clients.start_soon(self._delete)
                for _ in range(3):
                    await trio.sleep(self.rng.uniform(0, 0.1))
                    here = node.replicas.logs.directory_of(node.partition("apples").log)  # type: ignore[assignment]
                    (other,) = (each for each in node.directories if each is not here)
                    assert moves.move("apples", 0, other.path) is ErrorCode.NONE
                    await eventually(lambda: not moves._latest)
            await trio.sleep(0.1)
            nursery.cancel_scope.cancel()

    async def assign(self, topic_id: bytes, index: int, directory_id: bytes) -> None:
        """As the controller's driver: the answer comes a little later than the commit."""
        self.promise(assigned=self.now.assigned | {directory_id})
        await trio.sleep(self.rng.uniform(0, 0.005))
        self.promise(assigned=frozenset([directory_id]))
        await trio.sleep(self.rng.uniform(0, 0.005))

    async def _produce(self) -> None:
        for number in range(RECORDS):
            self.node.append("apples", b"%d" % number)
            self.promise(appended_end=number + 1)
            await trio.sleep(self.rng.uniform(0, 0.01))

    async def _watch(self) -> None:
        """Whatever a consumer could have read is there after any crash."""
        while True:
            seen = self.node.partition("apples").high_watermark
            if seen > self.now.flushed_end:
                self.promise(flushed_end=seen)
            await trio.sleep(0.0005)

    async def _delete(self) -> None:
        while self.now.appended_end < RECORDS:
            await trio.sleep(self.rng.uniform(0, 0.02))
            offset = self.rng.randint(self.now.must_start, self.node.partition("apples").high_watermark)
            self.promise(may_start=max(offset, self.now.may_start))
            asked = DeleteRecordsPartition(partition_index=0, offset=offset)
            request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="apples", partitions=[asked])])
            answer = await self.node.call(delete_records, request, 2)
            assert answer.topics[0].partitions[0].error_code == 0
            self.promise(must_start=max(offset, self.now.must_start))

    # After a crash

    def check(self, survivors: Survivors, choice: Choice, promise: Promise, assigned: bytes) -> None:
        disk, _ = survivors.state(choice).disk(self.disk)
        directories = [LogDirectory.open(disk, path, rng=Random(1), node_id=1) for path in self.config.log_dirs]
        logs = HostedLogs(directories, clock=VirtualClock(), producer_id_expiration_ms=1 << 40)
        config = LogConfig.from_properties({"flush.messages": "1", "segment.bytes": str(SEGMENT_BYTES)})
        log, _ = logs.open(APPLES, self.topic_id, config, [assigned])
        promised_end = promise.appended_end if choice.is_killed else promise.flushed_end
        assert log.log_end_offset >= promised_end
        assert promise.must_start <= log.log_start_offset <= max(promise.may_start, promise.must_start)
        expected = [(offset, b"%d" % offset) for offset in range(log.log_start_offset, log.log_end_offset)]
        assert [(each.offset, each.value) for each in read_all(log)] == expected


def promised(run: Run, done: int) -> Promise:
    """By the time that so many operations were done."""
    return next(each for each in reversed(run.promises) if each.at <= done)


@pytest.mark.parametrize("seed", [0, 1, 24])
def test_whatever_is_promised_of_a_log_that_moves_is_there_after_every_crash(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "pykbroker")
    run = Run(seed)
    run.play()
    survivors = Survivors.of_new_disk(run.disk)
    begun = next(each.at for each in run.promises if each.assigned)
    checked = 0
    for cut, operation in enumerate(run.disk.journal, 1):
        survivors.apply(operation)
        if cut <= begun:
            continue
        plain, others = survivors.choices(f"{seed}/{cut}", RANDOM_CHOICES)
        for choice in [*plain, *others[-RANDOM_CHOICES:]]:
            promise = promised(run, cut - choice.is_torn)
            for assigned in sorted(promise.assigned):
                try:
                    run.check(survivors, choice, promise, assigned)
                except Exception as failure:
                    failure.add_note(f"seed {seed}, cut {cut}, {choice.label}, {promise}")
                    raise
                checked += 1
    assert checked > 1000
