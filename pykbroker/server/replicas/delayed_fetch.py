"""A Fetch request reads, and waits until there is enough to answer; Kafka's `DelayedFetch`.

An answer is due when `min_bytes` are there, when a partition has something else to say (an error, a diverging epoch, a
preferred replica), or when `max_wait_ms` are over. A partition that does not exist does not cut the wait for the others
short. While the request waits, only what has changed is read again.

A consumer that asks for something else on the same connection meanwhile, as Spark does for the ends of each partition
that it has read, gets its answer at once, too, since the other one has to come behind it. Apache Kafka lets both wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeVar

from pykbroker.protocol.errors import ErrorCode
from pykbroker.replication.fetch_session import CachedPartition, FetchContext, PartitionAnswers, WatchedContext
from pykbroker.replication.partition import Partition
from pykbroker.replication.reads import FetchParams, FetchPartitionData
from pykbroker.replication.session_watch import PartitionKey

from ..network.large_requests import Admission
from ..runtime.turns import Turn
from .delayed_operation import DelayedOperation, PartitionChanges, WaitingClient
from .fetch_waits import FetchWaits
from .partition_reads import PartitionReads, Reads, refusal

READ_AT_ONCE: Final = 100
"""So many reads take less than one turn: no change between a read and the wait for it is missed."""

_NOT_HERE = (
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
_NONE: Final = ErrorCode.NONE  # from its enumeration it takes Python 3.11 as long as a call

KeyT = TypeVar("KeyT")


class Changes(Protocol[KeyT]):
    """The changes of what a request reads, as `PartitionChanges` and `SessionChanges` tell them."""

    async def next(self) -> list[KeyT]: ...


class DelayedFetch:
    """One request: what it reads, and where it waits. admission: of a large request."""

    __slots__ = ("_admission", "_asked_again", "_client", "_max_wait_ms", "_min_bytes", "_reads", "_turn", "_waits")

    def __init__(
        self,
        reads: PartitionReads,
        params: FetchParams,
        turn: Turn,
        waits: FetchWaits,
        client: WaitingClient,
        admission: Admission | None,
    ) -> None:
        self._reads = reads
        self._turn = turn
        self._waits = waits
        self._client = client
        self._asked_again = client.asked_again if params.replica_id < 0 else None
        self._admission = admission
        self._min_bytes = params.min_bytes
        self._max_wait_ms = params.max_wait_ms

    def answers(self, context: FetchContext) -> Awaitable[PartitionAnswers]:
        """Return what the answer may name, when it is due."""
        watched = context.watched
        if watched is not None:
            return self._of_session(watched, context.partitions())
        wanted = list(context.partitions())
        if len(wanted) <= READ_AT_ONCE or self._max_wait_ms <= 0:  # who does not wait misses no change
            return self._of_few(wanted)
        return self._of_many(wanted)

    async def _of_few(self, wanted: list[CachedPartition]) -> PartitionAnswers:
        reads = await self._reads.read(wanted)
        missing = [read for read in reads if read[1].error_code in _NOT_HERE]
        if missing:
            # Kafka answers them last.
            reads = _hosted(reads)
        if not self._has_to_wait(reads):
            return reads + missing
        places = self._places(reads)
        with self._room(len(wanted)), self._changes(places) as changes:
            await self._until_enough(changes, reads, places.__getitem__)
        return reads + missing

    async def _of_many(self, wanted: list[CachedPartition]) -> PartitionAnswers:
        """Read in several turns, and watch from before the first read, so that no change in between is missed."""
        hosted, missing = await self._found(wanted)
        with self._changes(hosted) as changes:
            reads = await self._reads.read(hosted.values())
            if not self._has_to_wait(reads):
                return reads + missing
            places = {partition: number for number, partition in enumerate(hosted)}
            with self._room(len(wanted)):
                await self._until_enough(changes, reads, places.__getitem__)
        return reads + missing

    async def _of_session(self, watched: WatchedContext, unsettled: Iterable[CachedPartition]) -> PartitionAnswers:
        """Read and answer what has changed in a follower's session."""
        session, self._reads.watched = watched.session, watched
        reads = await self._reads.read(unsettled)
        hosted = _hosted(reads)
        await self._turn.took(len(reads) // 4)
        if len(reads) - len(hosted) == len(session.cached) or self._max_wait_ms <= 0 or self._is_enough(hosted):
            return reads
        places = {session.key(cached): number for number, (cached, _) in enumerate(reads)}

        def place(key: PartitionKey) -> int:
            if key not in places:
                places[key] = len(reads)
                reads.append((session.cached[key], FetchPartitionData()))
            return places[key]

        with (
            self._room(len(reads)),
            SessionChanges(watched, timeout_ms=self._max_wait_ms, client=self._client) as changes,
        ):
            await self._until_enough(changes, reads, place)
        return reads

    def _changes(self, partitions: Iterable[Partition]) -> PartitionChanges:
        return PartitionChanges(
            partitions, timeout_ms=self._max_wait_ms, client=self._client, asked_again=self._asked_again
        )

    async def _until_enough(self, changes: Changes[KeyT], reads: Reads, place: Callable[[KeyT], int]) -> None:
        while changed := await changes.next():
            numbers = [place(key) for key in changed]
            await self._reads.read_again(reads, numbers)
            if self._is_enough([reads[number] for number in numbers]):
                return

    def _has_to_wait(self, reads: Reads) -> bool:
        return bool(reads) and self._max_wait_ms > 0 and not self._is_enough(reads)

    def _is_enough(self, reads: Reads) -> bool:
        return self._reads.bytes_read >= self._min_bytes or any(
            data.error_code is not _NONE or data.diverging_epoch is not None or data.preferred_read_replica >= 0
            for _, data in reads
        )

    def _places(self, reads: Reads) -> dict[Partition, int]:
        """Return where the read of each hosted partition is."""
        found = ((self._reads.find(cached), number) for number, (cached, _) in enumerate(reads))
        return {partition: number for partition, number in found if isinstance(partition, Partition)}

    async def _found(self, wanted: list[CachedPartition]) -> tuple[dict[Partition, CachedPartition], Reads]:
        """Return the partitions that are hosted here, and the answers for the others."""
        hosted: dict[Partition, CachedPartition] = {}
        missing = []
        for cached in wanted:
            partition = self._reads.find(cached)
            if isinstance(partition, Partition):
                hosted[partition] = cached
            else:
                missing.append((cached, refusal(partition)))
            if self._turn.ends_with(1):
                await self._turn.next()
        return hosted, missing

    def _room(self, partitions: int) -> AbstractContextManager[None]:
        """Enter the room to wait in: a large request is in hand no longer, and what it holds counts as waiting."""
        if self._admission is not None:
            self._admission.leave()
        return self._waits.room(partitions)


def _hosted(reads: Reads) -> Reads:
    return [read for read in reads if read[1].error_code not in _NOT_HERE]


class SessionChanges(DelayedOperation):
    """The wait for changes of what a follower's fetch session watches.

    Nothing changes any more for a request that was overtaken, be it by another one of its session.
    """

    __slots__ = ("_context",)

    def __init__(self, context: WatchedContext, *, timeout_ms: int, client: WaitingClient | None = None) -> None:
        super().__init__(timeout_ms, client)
        self._context = context

    def _watch(self) -> None:
        if not self._context.is_overtaken:
            self._context.watch.on_change = self._wake

    def _unwatch(self) -> None:
        watch = self._context.watch
        if watch.on_change == self._wake:  # and not that of a request on another connection
            watch.on_change = None

    async def next(self) -> list[PartitionKey]:
        """Return what has changed since it was read, in order of the changes; nothing once the time is over."""
        changed = self._take()
        if not changed and not self._context.is_overtaken:
            await self._wait()
            changed = self._take()
        return [key for key in changed if key in self._context.session.cached]

    def _take(self) -> list[PartitionKey]:
        """The changes of an overtaken request are the other one's."""
        return [] if self._context.is_overtaken else self._context.watch.take_changes()
