"""A Produce request waits for the disk and for the in-sync replicas; Kafka's `DelayedProduce`.

Records of a topic with `flush.messages` are acknowledged once they are on the disk. With acks=all every in-sync replica
must have them, too. Each partition keeps the offset that its records got, whatever becomes of the wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Protocol, TypeAlias

from pykbroker.protocol.errors import ErrorCode
from pykbroker.replication.appended import Appended
from pykbroker.replication.partition import ACKS_ALL, Partition

from ..runtime.few_tasks import in_few_tasks
from ..runtime.turns import Turn
from .delayed_operation import PartitionChanges, WaitingClient
from .replica_manager import ReplicaManager

_STEPS_OF_LOOK = 2


class ProducePartitionStatus(Protocol):
    """The answer for one partition; Kafka's class of this name."""

    error_code: int


_Waiting: TypeAlias = tuple[Appended, ProducePartitionStatus]


class DelayedProduce:
    """The appends of one request that are not settled yet. `add` each of them, then `complete` all."""

    __slots__ = ("_replicas", "_required_acks", "_unflushed", "_unreplicated")

    def __init__(self, replicas: ReplicaManager, required_acks: int) -> None:
        self._replicas = replicas
        self._required_acks = required_acks
        self._unflushed: list[_Waiting] = []
        self._unreplicated: list[_Waiting] = []

    def add(self, appended: Appended, status: ProducePartitionStatus) -> None:
        """An append has to wait, at once behind it; `status` gets the error code that the wait ends with."""
        if appended.lacks_flush:
            self._unflushed.append((appended, status))
        if self._required_acks == ACKS_ALL:
            error = appended.settled()
            if error is None:
                self._unreplicated.append((appended, status))
            else:
                status.error_code = error

    async def complete(self, timeout_ms: int, client: WaitingClient, turn: Turn) -> None:
        """Return when every append is settled, or the time is over. `timeout_ms` is for the replicas alone."""
        if self._unflushed:
            await in_few_tasks(self._unflushed, self._flush)
        if self._unreplicated:
            await self._await_replication(timeout_ms, client, turn)

    async def _flush(self, waiting: _Waiting) -> None:
        appended, status = waiting
        if not await self._replicas.flush(appended.partition, appended.end_offset):
            status.error_code = self._settled(appended) or ErrorCode.KAFKA_STORAGE_ERROR

    async def _await_replication(self, timeout_ms: int, client: WaitingClient, turn: Turn) -> None:
        """Look at what has changed, and not at all that is open: thousands of partitions may change one by one."""
        still_open: dict[Partition, list[_Waiting]] = {}
        for waiting in self._unreplicated:
            still_open.setdefault(waiting[0].partition, []).append(waiting)
        with PartitionChanges(still_open, timeout_ms=timeout_ms, client=client) as changes:
            changed = list(still_open)
            while changed:
                for partition in changed:
                    left = self._still_open(still_open.pop(partition, ()))
                    if left:
                        still_open[partition] = left
                    await turn.took(_STEPS_OF_LOOK)
                if not still_open:
                    return
                changed = await changes.next()
        for _, status in chain.from_iterable(still_open.values()):
            status.error_code = ErrorCode.REQUEST_TIMED_OUT

    def _still_open(self, unreplicated: Iterable[_Waiting]) -> list[_Waiting]:
        """The others get their error code. An append whose flush has failed waits for nothing more."""
        still_open = []
        for waiting in unreplicated:
            appended, status = waiting
            if status.error_code:
                continue
            error = self._settled(appended)
            if error is None:
                still_open.append(waiting)
            else:
                status.error_code = error
        return still_open

    def _settled(self, appended: Appended) -> ErrorCode | None:
        """An append that was lost with its log directory is not answered as if another leader had it."""
        error, partition = appended.settled(), appended.partition
        if error is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return error
        hosted = self._replicas.get_partition(partition.topic, partition.index)
        return ErrorCode.KAFKA_STORAGE_ERROR if hosted is ErrorCode.KAFKA_STORAGE_ERROR else error
