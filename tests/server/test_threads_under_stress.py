"""The true thread pool under stress: a whole node on the real disk, and a log that is cut off again and again.

Python's threads change as often as they can. Segments roll, retention deletes, the cleaner compacts, flushes and
checkpoints run, cold pages are read, logs move to another directory, topics are deleted and come back: at the end the
logs are what a model says, in a next life of the node, too, and no file descriptor stays.
PYKBROKER_STRESS_ROUNDS says how long it goes on; `make test` has a few seconds of it.
"""

from __future__ import annotations

import gc
import os
import random
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
import trio.lowlevel

from pykbroker.api import HANDLERS
from pykbroker.config import BrokerConfig
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.log_dirs import AlterReplicaLogDir, AlterReplicaLogDirsRequest, AlterReplicaLogDirTopic
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.messages.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.records.compression import Compression
from pykbroker.server.logs.log_truncations import carry_out
from pykbroker.server.network.socket_transport import SocketNetwork, SocketOptions
from pykbroker.server.node.environment import Environment
from pykbroker.server.node.node import Node, NodeReady
from pykbroker.server.runtime.clock import SystemClock
from pykbroker.server.runtime.threads import WorkerThreads
from pykbroker.storage.files.disk import OsDisk
from pykbroker.storage.log.log import LogConfig
from tests.server.serving import Client
from tests.storage.batches import batch, open_log, read_all

ROUNDS = int(os.environ.get("PYKBROKER_STRESS_ROUNDS", "1"))
_BATCHES = 120
"""Of each topic in a round."""
_ENDS_WITHIN_S = 300.0 * ROUNDS
_SWITCH_S = 1e-6
_KEYS = 20
_EARLIEST, _LATEST = -2, -1

CONFIGURATION = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "log.retention.check.interval.ms": "20",
    "log.initial.task.delay.ms": "10",
    "log.flush.offset.checkpoint.interval.ms": "20",
    "log.flush.start.offset.checkpoint.interval.ms": "20",
    "replica.high.watermark.checkpoint.interval.ms": "20",
    "log.cleaner.backoff.ms": "10",
    "log.cleaner.threads": "2",
}
COMMON = {"internal.segment.bytes": "20000", "file.delete.delay.ms": "20", "index.interval.bytes": "500"}
TOPICS: Mapping[str, Mapping[str, str]] = {
    "kept": {},
    "old": {"retention.bytes": "100000"},
    "flushed": {"flush.messages": "1"},
    "compact": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "packed": {},
}


@pytest.fixture(autouse=True)
def quick_threads() -> Iterator[None]:
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    yield
    sys.setswitchinterval(before_s)


def descriptors() -> dict[str, int]:
    """Return the open files and sockets by their names, when what nobody needs is closed.

    Nothing here makes pipes, but the librdkafka of an earlier test in this process does, whenever it likes.
    """
    gc.collect()
    counts: dict[str, int] = {}
    for each in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            name = os.readlink(f"/proc/self/fd/{each}")
            if not name.startswith("pipe:"):
                counts[name] = counts.get(name, 0) + 1
    return counts


class Fetched(NamedTuple):
    """records: offset, key and value of each, from the asked offset on. next_offset: behind the batches."""

    log_start_offset: int
    records: list[tuple[int, Any, bytes]]
    next_offset: int


class Stressed:
    """A node's clients, and the model of its topics. model: by topic, value and key by offset."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rng = random.Random(1)
        self.model: dict[str, dict[int, tuple[bytes | None, bytes]]] = {name: {} for name in TOPICS}
        self.starts = dict.fromkeys(TOPICS, 0)
        """What clients have asked for, at least, or have seen."""
        self.is_over = False
        self.places: set[tuple[str, str]] = set()
        """Where topics have been."""
        self._numbers = 0
        self.directories = [str(path / name) for name in ("one", "two")]

    @asynccontextmanager
    async def node(self) -> AsyncIterator[None]:
        threads = WorkerThreads()
        config = BrokerConfig({**CONFIGURATION, "log.dirs": ",".join(self.directories)})
        self.network = SocketNetwork(SocketOptions(), threads)
        node = Node(
            config,
            HANDLERS,
            Environment(
                disk=OsDisk(), network=self.network, clock=SystemClock(), threads=threads, rng=random.Random(1)
            ),
        )
        async with trio.open_nursery() as nursery:
            ready: NodeReady = await nursery.start(node.run)
            self.port = ready.listeners[0].port
            yield
            node.stop()
            await node.stopped.wait()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        client = Client(await self.network.connect("127.0.0.1", self.port))
        try:
            yield client
        finally:
            client.transport.close()

    async def create(self, client: Client, name: str, configs: Mapping[str, str]) -> None:
        topic = CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in {**COMMON, **configs}.items()],
        )
        answer: Any = await client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
        assert answer.topics[0].error_code == 0, answer

    def records(self, name: str, count: int, size: int) -> list[Record]:
        records = []
        for _ in range(count):
            self._numbers += 1
            key = b"key %d" % self.rng.randrange(_KEYS) if name == "compact" else None
            value = b"%d " % self._numbers + self.rng.randbytes(8).hex().encode() * self.rng.randint(1, size)
            records.append(Record(key=key, value=value, timestamp=SystemClock().now_ms()))
        return records

    async def produce(self, client: Client, name: str, records: list[Record], compression: Compression) -> ErrorCode:
        data = encode_batch(records, compression=compression)
        partition = PartitionProduceData(index=0, records=data)
        request = ProduceRequest(
            acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=name, partition_data=[partition])]
        )
        answer: Any = await client.ask(request, 9)
        told = answer.responses[0].partition_responses[0]
        if not told.error_code and name in self.model:
            for offset, record in enumerate(records, told.base_offset):
                assert offset not in self.model[name], "an offset is given out twice"
                self.model[name][offset] = record.key, bytes(record.value or b"")
        return ErrorCode(told.error_code)

    async def fetch(self, client: Client, name: str, offset: int) -> Fetched:
        """As many as come at a time: none where pages are to be read in a thread for longer than the request waits, and
        where compaction has left a batch without records.
        """
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=50_000)
        request = FetchRequest(
            max_wait_ms=5, min_bytes=1, max_bytes=50_000, topics=[FetchTopic(topic=name, partitions=[partition])]
        )
        answer: Any = await client.ask(request, 11)
        data = answer.responses[0].partitions[0]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return Fetched(await self._start(client, name), [], offset)
        assert data.error_code == 0, ErrorCode(data.error_code)
        records = []
        next_offset = offset
        for each in iter_batches(bytes(data.records or b"")):
            each.ensure_valid()
            next_offset = each.header.next_offset
            for record in iter_records(each):
                if record.offset >= offset:
                    records.append((record.offset, record.key and bytes(record.key), bytes(record.value or b"")))
        return Fetched(data.log_start_offset, records, next_offset)

    # Who acts

    async def write(self, name: str) -> None:
        async with self.client() as client:
            for _ in range(_BATCHES * ROUNDS):
                if name == "packed":
                    records, compression = self.records(name, 300, 60), Compression.GZIP
                else:
                    records, compression = self.records(name, self.rng.randint(1, 10), 40), Compression.NONE
                assert await self.produce(client, name, records, compression) == ErrorCode.NONE

    async def read(self, name: str) -> None:
        """From anywhere, whatever happens to the log meanwhile."""
        async with self.client() as client:
            while not self.is_over:
                offset = self.rng.randint(0, len(self.model[name]))
                fetched = await self.fetch(client, name, offset)
                self.starts[name] = max(self.starts[name], fetched.log_start_offset)
                self.check(name, fetched.records)
                await trio.lowlevel.checkpoint()

    def check(self, name: str, records: list[tuple[int, Any, bytes]]) -> None:
        """Who produced a record may not have heard of it yet."""
        for offset, key, value in records:
            if offset in self.model[name]:
                assert self.model[name][offset] == (key, value), f"{name} has other records at {offset}"

    async def delete_records(self, name: str) -> None:
        async with self.client() as client:
            while not self.is_over:
                offset = self.rng.randint(self.starts[name], max(len(self.model[name]), self.starts[name]))
                offset = min(offset, self.starts[name] + 50)
                partition = DeleteRecordsPartition(partition_index=0, offset=offset)
                request = DeleteRecordsRequest(
                    topics=[DeleteRecordsTopic(name=name, partitions=[partition])], timeout_ms=30_000
                )
                answer: Any = await client.ask(request, 2)
                if not answer.topics[0].partitions[0].error_code:
                    self.starts[name] = max(self.starts[name], offset)
                await trio.sleep(0.02)

    async def move(self) -> None:
        async with self.client() as client:
            while not self.is_over:
                topics = [AlterReplicaLogDirTopic(name=self.rng.choice(list(TOPICS)), partitions=[0])]
                where = AlterReplicaLogDir(path=self.rng.choice(self.directories), topics=topics)
                answer: Any = await client.ask(AlterReplicaLogDirsRequest(dirs=[where]), 2)
                assert answer.results[0].partitions[0].error_code == 0, answer
                await trio.sleep(0.03)
                self._look_where_they_are()

    def _look_where_they_are(self) -> None:
        places = [(directory, name) for directory in self.directories for name in TOPICS]
        self.places.update(place for place in places if os.path.isdir("{}/{}-0".format(*place)))

    async def come_and_go(self) -> None:
        """A topic is deleted while it is written to, flushed and compacted, and comes back."""
        async with self.client() as client:
            for number in range(10 * ROUNDS):
                configs = {"flush.messages": "1"} if number % 2 else TOPICS["compact"]
                await self.create(client, "passing", configs)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write_until_it_is_gone)
                    await trio.sleep(self.rng.uniform(0, 0.05))
                    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="passing")], timeout_ms=30_000)
                    answer: Any = await client.ask(request, 6)
                    assert answer.responses[0].error_code == 0, answer

    async def _write_until_it_is_gone(self) -> None:
        async with self.client() as client:
            while not await self.produce(client, "passing", self.records("compact", 5, 40), Compression.NONE):
                pass

    async def cool_down(self) -> None:
        """The pages of files that are written leave the cache: they are read in a thread next."""
        while not self.is_over:
            for directory, _, names in os.walk(self.path):
                for name in names:
                    if name.endswith(".log"):
                        with suppress(FileNotFoundError):
                            descriptor = os.open(f"{directory}/{name}", os.O_RDONLY)
                            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                            os.close(descriptor)
            await trio.sleep(0.05)

    # The verdict

    async def check_all(self) -> None:
        async with self.client() as client:
            answer: Any = await client.ask(MetadataRequest(topics=None), 9)
            assert {each.name for each in answer.topics} == set(TOPICS)
            for name in TOPICS:
                found: dict[int, tuple[Any, bytes]] = {}
                offset = start = await self._start(client, name)
                end = await self._offset(client, name, _LATEST)
                while offset < end:
                    fetched = await self.fetch(client, name, offset)
                    found.update((each, (key, value)) for each, key, value in fetched.records)
                    offset = fetched.next_offset
                self._check_topic(name, start, found)

    async def _start(self, client: Client, name: str) -> int:
        return await self._offset(client, name, _EARLIEST)

    async def _offset(self, client: Client, name: str, timestamp: int) -> int:
        partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[partition])])
        answer: Any = await client.ask(request, 6)
        assert answer.topics[0].partitions[0].error_code == 0, answer
        return int(answer.topics[0].partitions[0].offset)

    def _check_topic(self, name: str, start: int, found: dict[int, tuple[Any, bytes]]) -> None:
        model = self.model[name]
        assert list(model) == list(range(len(model)))
        assert start >= self.starts[name]
        expected = {offset: model[offset] for offset in model if offset >= start}
        match name:
            case "compact":
                assert start == 0
                assert found.items() <= expected.items()
                assert dict(found.values()) == dict(expected.values())
                assert len(found) < len(expected), "nothing was compacted"
            case "old" | "flushed":
                assert found == expected
                assert start > 0, "nothing was deleted"
            case _:
                assert found == expected
                assert start == 0


def test_a_node_whose_threads_are_never_left_alone_keeps_its_logs(tmp_path: Path) -> None:
    before = descriptors()

    async def main() -> None:
        stressed = Stressed(tmp_path)
        with trio.fail_after(_ENDS_WITHIN_S):
            async with stressed.node():
                async with stressed.client() as client:
                    for name, configs in TOPICS.items():
                        await stressed.create(client, name, configs)
                async with trio.open_nursery() as beside:
                    for name in TOPICS:
                        beside.start_soon(stressed.read, name)
                    beside.start_soon(stressed.delete_records, "flushed")
                    beside.start_soon(stressed.move)
                    beside.start_soon(stressed.cool_down)
                    async with trio.open_nursery() as writing:
                        for name in TOPICS:
                            writing.start_soon(stressed.write, name)
                        writing.start_soon(stressed.come_and_go)
                    stressed.is_over = True
                assert len(stressed.places) > len(TOPICS), "nothing was moved"
                await stressed.check_all()
            async with stressed.node():
                await stressed.check_all()

    trio.run(main)
    assert descriptors() == before


def test_a_log_that_is_cut_off_beside_its_flushes_is_what_it_should_be(tmp_path: Path) -> None:
    """As a follower's is, whose leaders change: appends and cuts on the event loop, all else in threads."""
    before = descriptors()
    config = LogConfig(segment_bytes=2000, index_interval_bytes=200)
    log = open_log(OsDisk(), str(tmp_path / "t-0"), config)
    threads, rng = WorkerThreads(), random.Random(1)
    model: list[bytes] = []
    ends = [0]
    """Where batches end."""
    is_over = False

    async def flush() -> None:
        while not is_over:
            end_offset, truncations, is_end_moving = log.log_end_offset, log.truncations, log.is_being_truncated
            await threads.run(log.flush)
            assert is_end_moving or log.truncations != truncations or log.recovery_point >= end_offset

    async def append(epoch: int) -> None:
        for _ in range(rng.randint(1, 20)):
            value = b"%d in epoch %d" % (len(model), epoch)
            count = rng.randint(1, 5)
            log.append_as_follower(batch(count, value=value, base_offset=log.log_end_offset, epoch=epoch))
            model.extend([value] * count)
            ends.append(len(model))
            await trio.lowlevel.checkpoint()

    async def change() -> None:
        for epoch in range(60 * ROUNDS):
            await append(epoch)
            del ends[max(len(ends) - rng.randint(0, 20), 1) :]
            truncation = log.begin_truncation(ends[-1])
            del model[ends[-1] :]
            if truncation is not None:
                await carry_out(truncation, threads)
            assert log.recovery_point <= log.log_end_offset == len(model)

    async def main() -> None:
        nonlocal is_over
        with trio.fail_after(_ENDS_WITHIN_S):
            async with trio.open_nursery() as beside:
                beside.start_soon(flush)
                beside.start_soon(flush)
                await change()
                is_over = True
            assert [record.value for record in read_all(log)] == model
            await threads.run(log.close)

    trio.run(main)
    again = open_log(OsDisk(), str(tmp_path / "t-0"), config, recovery_point=len(model))
    assert [record.value for record in read_all(again)] == model
    assert again.log_end_offset == len(model)
    again.abandon()
    assert descriptors() == before
