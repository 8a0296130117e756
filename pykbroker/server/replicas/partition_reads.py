"""The reads of one Fetch request, in its order of partitions; Kafka's `ReplicaManager.readFromLog`.

Records stay in their files: what is read of a partition is a region that the transport sends. What nobody has read
since the node started is verified first, in a thread, and then read once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final, TypeAlias

from pykbroker.protocol.errors import ErrorCode
from pykbroker.replication.fetch_session import CachedPartition, PartitionAnswers, WatchedContext
from pykbroker.replication.partition import Partition
from pykbroker.replication.reads import FetchParams, FetchPartitionData
from pykbroker.replication.replica_selector import RackAwareReplicaSelector
from pykbroker.storage.files.errors import CorruptLog, FileError
from pykbroker.storage.segments.verification import Check, NotVerified

from ..runtime.clock import Clock
from ..runtime.turns import Turn
from .replica_manager import ReplicaManager

_PORTION: Final = 100
_STEPS_OF_READ: Final = 6

MayRead: TypeAlias = Callable[[str | None], bool]
"""Tells whether the client may read a topic; the topic of an id that nobody knows has no name."""

Reads: TypeAlias = list[tuple[CachedPartition, FetchPartitionData]]


@cache
def refusal(error_code: ErrorCode) -> FetchPartitionData:
    """One for all partitions; the aborted transactions are empty and not null, as Kafka does."""
    if error_code is ErrorCode.INCONSISTENT_TOPIC_ID:  # found by the read itself, which has no list then
        return FetchPartitionData(error_code)
    return FetchPartitionData(error_code, aborted_transactions=())


class PartitionReads:
    """The reads of a fetch.

    bytes_read: of what was read last of each partition. watched: the follower's session, where it watches.

    selector: for consumers that name their rack, where the node refers them to closer replicas. may_read: None where
    the client may read every topic.
    """

    __slots__ = (
        "_clock",
        "_counts",
        "_max_bytes",
        "_params",
        "_quota",
        "_replicas",
        "_selector",
        "_turn",
        "_unverified",
        "bytes_read",
        "may_read",
        "watched",
    )

    def __init__(
        self,
        replicas: ReplicaManager,
        params: FetchParams,
        turn: Turn,
        clock: Clock,
        selector: RackAwareReplicaSelector | None,
    ) -> None:
        self.bytes_read = 0
        self.watched: WatchedContext | None = None
        self.may_read: MayRead | None = None
        self._replicas = replicas
        self._params = params
        self._turn = turn
        self._clock = clock
        self._selector = selector if params.rack_id else None
        self._quota = replicas.leader_quota
        self._max_bytes = params.max_bytes
        self._unverified: list[tuple[Partition, Check]] = []
        self._counts = True
        """The offset that a follower asks for is what it has, at the first look alone (`Partition.read_as_replica`)."""

    def find(self, cached: CachedPartition) -> Partition | ErrorCode:
        if self.may_read is not None:
            name = self._replicas.topic_name(cached.topic_id) if cached.topic is None else cached.topic
            if not self.may_read(name):
                return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return self._replicas.get_fetched_partition(cached.topic, cached.topic_id, cached.partition)

    async def read(self, wanted: Iterable[CachedPartition]) -> Reads:
        """Read up to max_bytes over all; the first partition that has something gives a batch however large it is."""
        reads = await self._read_all(wanted)
        while self._unverified:
            await self._verify()
            reads = await self._read_all([cached for cached, _ in reads])
        return reads

    async def read_again(self, reads: Reads, numbers: list[int]) -> None:
        """Read again the partitions that have changed; of a thousand the others are as they were."""
        while True:
            self._unverified.clear()
            for count, number in enumerate(numbers, 1):
                cached, before = reads[number]
                self.bytes_read -= before.records_size
                budget = max(0, self._max_bytes - self.bytes_read)
                data = self._read(cached, budget, min_one_batch=not self.bytes_read)
                self.bytes_read += data.records_size
                reads[number] = cached, data
                if not count % _PORTION:
                    await self._turn.took(_PORTION * _STEPS_OF_READ)
            if not self._unverified:
                return
            await self._verify()

    async def _verify(self) -> None:
        for partition, check in self._unverified:
            await self._replicas.verify(partition, check)

    async def _read_all(self, wanted: Iterable[CachedPartition]) -> Reads:
        reads = []
        budget = self._max_bytes
        self.bytes_read = 0
        self._unverified.clear()
        for number, cached in enumerate(wanted):
            if number and not number % _PORTION:  # never behind the last read: who waits next has missed nothing
                await self._turn.took(_PORTION * _STEPS_OF_READ)
            data = self._read(cached, budget, min_one_batch=not self.bytes_read)
            if data.records_size:
                self.bytes_read += data.records_size
                budget = max(0, budget - data.records_size)
            reads.append((cached, data))
        self._counts = False
        return reads

    def _read(self, cached: CachedPartition, budget: int, min_one_batch: bool) -> FetchPartitionData:
        if self.may_read is None:  # one call less for each partition of a wide request
            partition = self._replicas.get_fetched_partition(cached.topic, cached.topic_id, cached.partition)
        else:
            partition = self.find(cached)
        if isinstance(partition, ErrorCode):
            return refusal(partition)
        try:
            return self._read_from(partition, cached, budget, min_one_batch)
        except NotVerified as unverified:
            self._unverified.append((partition, unverified.check))
            return FetchPartitionData()
        except CorruptLog as damage:
            self._replicas.quarantine(partition, damage)
            return refusal(ErrorCode.KAFKA_STORAGE_ERROR)
        except FileError as failure:
            self._replicas.failures.in_log(partition.log, failure)
            return refusal(ErrorCode.KAFKA_STORAGE_ERROR)

    def _read_from(
        self, partition: Partition, cached: CachedPartition, budget: int, min_one_batch: bool
    ) -> FetchPartitionData:
        params, asked = self._params, cached.request
        if asked.partition_max_bytes < 0:
            return FetchPartitionData(ErrorCode.INVALID_REQUEST)
        max_bytes = min(asked.partition_max_bytes, budget)
        if params.replica_id >= 0:
            return self._read_as_replica(partition, cached, max_bytes, min_one_batch)
        if self._selector is not None:
            preferred = self._selector.select(partition, params.rack_id, asked.fetch_offset)
            if preferred >= 0:
                return partition.refer_to(preferred, asked.current_leader_epoch)
        return partition.read(
            asked.fetch_offset,
            max_bytes,
            params.isolation,
            asked.current_leader_epoch,
            min_one_batch,
            last_fetched_epoch=asked.last_fetched_epoch,
            leader_only=params.leader_only,
        )

    def _read_as_replica(
        self, partition: Partition, cached: CachedPartition, max_bytes: int, min_one_batch: bool
    ) -> FetchPartitionData:
        params, asked = self._params, cached.request
        replica_id = params.replica_id
        if self._quota.is_set:
            max_bytes, min_one_batch = self._throttled(partition, max_bytes, min_one_batch)
        data = partition.read_as_replica(
            replica_id,
            asked.fetch_offset,
            max_bytes,
            asked.current_leader_epoch,
            min_one_batch,
            last_fetched_epoch=asked.last_fetched_epoch,
            log_start_offset=asked.log_start_offset,
            now_ms=self._clock.monotonic_ms(),
            broker_epoch=params.replica_epoch,
            counts=self._counts and partition.in_sync.hears(replica_id, params.number),
        )
        if self.watched is not None:
            self.watched.was_read(cached, partition, data, replica_id)
        return data

    def _throttled(self, partition: Partition, max_bytes: int, min_one_batch: bool) -> tuple[int, bool]:
        """Read nothing where the quota holds the follower back. Its offset counts all the same."""
        is_in_sync = self._params.replica_id in partition.isr
        if is_in_sync or not self._quota.holds_back(partition, self._clock.monotonic_ms()):
            return max_bytes, min_one_batch
        return 0, False

    async def note_sent(self, answers: PartitionAnswers) -> None:
        """Records that go to a follower count for the quota, whoever is in sync."""
        if not self._quota.is_set:
            return
        for cached, data in answers:
            partition = self.find(cached)
            if data.records_size and isinstance(partition, Partition):
                self._quota.note(partition, data.records_size, self._clock.monotonic_ms())
            await self._turn.took()
