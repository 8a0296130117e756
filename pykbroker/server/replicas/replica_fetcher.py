"""Copies what other brokers lead: a task for each of them asks it again and again, as `replication.follower` says.

Each leader has `num.replica.fetchers` tasks; `HostedPartitions` says who leads what (`ReplicationListener`). A request
names a thousand partitions at most, and the leader reads for it in turns. Of two requests `RequestContext.number` tells
the leader which is the newer one. Kafka's counterparts are `ReplicaFetcherManager` and its threads.

A broker that cannot be reached is asked again after `replica.fetch.backoff.ms`; one that leads nothing any more that is
followed here is not waited for. What `flush.messages` wants on the disk is there before its leader hears of it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import trio

from pykbroker.client.errors import ClientError
from pykbroker.config import BrokerConfig
from pykbroker.protocol.messages.fetch import FetchRequest, FetchResponse
from pykbroker.protocol.messages.offsets import ListOffsetsResponse
from pykbroker.protocol.schema import Message
from pykbroker.replication.due_truncation import DueTruncation
from pykbroker.replication.fetch_settings import FetchSettings
from pykbroker.replication.partition import NO_LEADER, Partition
from pykbroker.replication.quotas import ReplicaQuota
from pykbroker.storage.files.errors import FileError

from ..network.inter_broker import BrokerRequests
from ..runtime.clock import Clock
from ..runtime.few_tasks import in_few_tasks
from ..runtime.signal import Signal
from ..runtime.turns import portions

if TYPE_CHECKING:
    from pykbroker.replication.follower import Follower

logger = logging.getLogger(__name__)

_INTERRUPTIONS_APART_MS = 1000

ResponseT = TypeVar("ResponseT", bound=Message)

Truncate: TypeAlias = Callable[[DueTruncation], Awaitable[FileError | None]]
"""The truncation returns what the disk refused of it: `LogTruncations.run`."""

Flush: TypeAlias = Callable[[Partition, int], Awaitable[bool]]
"""The flush returns whether everything below the offset is on the disk: `ReplicaManager.flush`."""


def fetch_settings(config: BrokerConfig) -> FetchSettings:
    return FetchSettings(
        wait_max_ms=config.int("replica.fetch.wait.max.ms"),
        min_bytes=config.int("replica.fetch.min.bytes"),
        response_max_bytes=config.int("replica.fetch.response.max.bytes"),
        max_bytes=config.int("replica.fetch.max.bytes"),
        backoff_ms=config.int("replica.fetch.backoff.ms"),
    )


class ReplicaFetcher:
    """One conversation with one leader broker, about some of the partitions that it leads."""

    def __init__(
        self,
        leader_id: int,
        number: int,
        follower: Follower,
        brokers: BrokerRequests,
        *,
        flush: Flush,
        truncate: Truncate,
        clock: Clock,
        broker_epoch: Callable[[], int],
        timeout_ms: int,
    ) -> None:
        self.leader_id = leader_id
        self.follower = follower
        self._purpose = f"replication {number}"
        self._brokers = brokers
        self._flush = flush
        self._truncate = truncate
        self._clock = clock
        self._broker_epoch = broker_epoch
        self._timeout_ms = timeout_ms
        self._news = Signal()
        self._scope = trio.CancelScope()
        self._is_reached: bool | None = None
        self._asking: trio.CancelScope | None = None
        self._interrupted_ms = -_INTERRUPTIONS_APART_MS

    def wake(self) -> None:
        """The follower has something new to ask."""
        self._news.set()

    def interrupt(self) -> None:
        """The fetcher has a new partition to follow, whose producers wait: the leader may have nothing to tell for
        `replica.fetch.wait.max.ms`. Many that come one by one do not break a conversation each.
        """
        self._news.set()
        now_ms = self._clock.monotonic_ms()
        if self._asking is not None and now_ms - self._interrupted_ms >= _INTERRUPTIONS_APART_MS:
            self._interrupted_ms = now_ms
            self._asking.cancel()

    def stop(self) -> None:
        self._scope.cancel()

    async def run(self) -> None:
        with self._scope:
            while True:
                await self._step()
        # An answer may still be on its way: whoever follows this broker again is not to wait behind it.
        await self._brokers.close(self.leader_id, self._purpose)

    async def _step(self) -> None:
        follower = self.follower
        self._news.clear()
        try:
            offsets = follower.next_offsets_request()
            if offsets is not None:
                found = await self._ask(offsets, ListOffsetsResponse)
                follower.offsets_answered(found, self._clock.monotonic_ms(), self._clock.now_ms())
                await self._truncate_what_is_due()
            request = follower.next_request(await self._flushed_ms(), self._broker_epoch())
            await self._truncate_what_is_due()
            if request is not None and (response := await self._fetch(request)) is not None:
                for _ in follower.take_answer(response, self._clock.monotonic_ms(), self._clock.now_ms()):
                    await self._truncate_what_is_due()
                    await trio.lowlevel.checkpoint()
                await self._truncate_what_is_due()
        except ClientError as error:
            self._note_reached(False, str(error))
            follower.failed(self._clock.monotonic_ms())
            return
        if request is None and follower.has_more_to_tell:
            await trio.lowlevel.checkpoint()
        elif request is None and follower.next_offsets_request() is None:
            await self._wait()
        else:
            self._note_reached(True)

    async def _truncate_what_is_due(self) -> None:
        """Truncate without a pause in front: others wait as soon as it is due (`LogTruncations.settled`)."""
        while due := self.follower.truncations_due():
            with trio.CancelScope(shield=True):
                await in_few_tasks(due, self._truncate_one)

    async def _truncate_one(self, due: DueTruncation) -> None:
        failure = await self._truncate(due)
        self.follower.truncated(due, failure, self._clock.monotonic_ms())
        self.wake()

    async def _flushed_ms(self) -> int:
        """A time at which all that the next request tells of is on the disk, as far as it has to be."""
        while True:
            now_ms = self._clock.monotonic_ms()
            lacking = self.follower.lacking_flush(now_ms)
            if not lacking:
                return now_ms
            await in_few_tasks(lacking, self._flush_one)

    async def _flush_one(self, partition: Partition) -> None:
        if not await self._flush(partition, partition.log.log_end_offset):
            self.follower.not_flushed(partition, self._clock.monotonic_ms())

    async def _fetch(self, request: FetchRequest) -> FetchResponse | None:
        """Return None where it was interrupted: what is asked next is asked on another connection."""
        with trio.CancelScope() as self._asking:
            try:
                return await self._ask(request, FetchResponse)
            finally:
                self._asking = None
        await self._brokers.close(self.leader_id, self._purpose)
        self.follower.interrupted()
        return None

    async def _ask(self, request: Message, response_type: type[ResponseT]) -> ResponseT:
        return await self._brokers.request(
            self.leader_id, request, response_type, purpose=self._purpose, timeout_ms=self._timeout_ms
        )

    async def _wait(self) -> None:
        deadline_ms = self.follower.next_deadline_ms()
        wait_s = math.inf if deadline_ms is None else max(deadline_ms - self._clock.monotonic_ms(), 0) / 1000
        await self._news.wait(wait_s)

    def _note_reached(self, is_reached: bool, why: str = "") -> None:
        """One line when it changes."""
        if is_reached is self._is_reached:
            return
        if is_reached:
            logger.info("the replica fetcher has reached broker %d", self.leader_id)
        else:
            logger.warning("the replica fetcher cannot reach broker %d, and tries again: %s", self.leader_id, why)
        self._is_reached = is_reached


class ReplicaFetchers:
    """The fetchers of a node share its partitions. This is a `hosted_partitions.ReplicationListener`.

    Nothing is fetched before `run`.
    """

    def __init__(
        self,
        config: BrokerConfig,
        brokers: BrokerRequests,
        *,
        flush: Flush,
        truncate: Truncate,
        clock: Clock,
        on_disk_failure: Callable[[Partition, FileError], None],
        throttle: ReplicaQuota | None = None,
    ) -> None:
        self._throttle = throttle
        self._node_id = config.node_id
        self._settings = fetch_settings(config)
        self._fetchers_per_leader = config.int("num.replica.fetchers")
        self._timeout_ms = config.int("replica.socket.timeout.ms")
        self._brokers = brokers
        self._flush = flush
        self._truncate = truncate
        self._clock = clock
        self._on_disk_failure = on_disk_failure
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        self._fetcher_of: dict[Partition, tuple[int, int]] = {}
        self._nursery: trio.Nursery | None = None
        self._broker_epoch: Callable[[], int] = lambda: -1

    def __len__(self) -> int:
        """Return the number of fetchers, of all leaders."""
        return len(self._fetchers)

    async def use_fetchers_per_leader(self, count: int) -> None:
        """Spread the partitions of each leader over another number of fetchers, in turns."""
        if count == self._fetchers_per_leader:
            return
        logger.info("replica fetchers per leader: %d in place of %d", count, self._fetchers_per_leader)
        self._fetchers_per_leader = count
        for portion in portions(list(self._fetcher_of)):
            for partition in portion:
                if partition in self._fetcher_of:
                    self.applied(partition)
            await trio.lowlevel.checkpoint()

    def applied(self, partition: Partition) -> None:
        """The partition may have another leader, or another leader epoch."""
        leader = partition.leader
        if leader in (NO_LEADER, self._node_id):
            self.removed(partition)
            return
        key = leader, partition.index % self._fetchers_per_leader
        if self._fetcher_of.get(partition, key) != key:
            self.removed(partition)
        self._fetcher_of[partition] = key
        fetcher = self._fetchers.get(key)
        if fetcher is None:
            fetcher = self._fetchers[key] = self._new_fetcher(*key)
        is_new = partition not in fetcher.follower
        fetcher.follower.follow(partition)
        if is_new:
            fetcher.interrupt()
        else:
            fetcher.wake()

    def removed(self, partition: Partition) -> None:
        """The partition is followed no longer."""
        key = self._fetcher_of.pop(partition, None)
        if key is None:
            return
        fetcher = self._fetchers[key]
        fetcher.follower.unfollow(partition)
        fetcher.wake()
        if not len(fetcher.follower):
            fetcher.stop()
            del self._fetchers[key]

    def _new_fetcher(self, leader_id: int, number: int) -> ReplicaFetcher:
        from pykbroker.replication.follower import Follower  # a broker that only leads has no use for it

        fetcher = ReplicaFetcher(
            leader_id,
            number,
            Follower(self._node_id, self._settings, self._on_disk_failure, self._throttle, defer_truncations=True),
            self._brokers,
            flush=self._flush,
            truncate=self._truncate,
            clock=self._clock,
            broker_epoch=lambda: self._broker_epoch(),
            timeout_ms=self._timeout_ms,
        )
        if self._nursery is not None:
            self._nursery.start_soon(fetcher.run)
        return fetcher

    async def run(self, broker_epoch: Callable[[], int]) -> None:
        """Fetch until the task is cancelled. broker_epoch: the registration's, which leaders compare (KIP-903)."""
        self._broker_epoch = broker_epoch
        try:
            async with trio.open_nursery() as self._nursery:
                for fetcher in self._fetchers.values():
                    self._nursery.start_soon(fetcher.run)
                await trio.sleep_forever()
        finally:
            self._nursery = None
