"""Marker appends write transaction markers into the partitions that this node leads, whoever decided the transaction.

The coordinator of this node and those of others (WriteTxnMarkers) come here. A partition of `__consumer_offsets` is its
group coordinator's: what is pending there counts from the marker on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.replication.appended import Appended
from pykbroker.replication.partition import ACKS_ALL, Partition
from pykbroker.storage.log.log import AppendOrigin

from ..replicas.replica_manager import ReplicaManager
from ..runtime.clock import Clock
from .group_coordinator import CONSUMER_OFFSETS, GroupCoordinator
from .marker import Marker

_ERRORS_OF_GROUPS = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""A transaction coordinator knows partitions and leaders, and tries again."""


AppendedMarker: TypeAlias = Appended
"""A marker counts once its append is committed. Nobody may forget the decision before that: without its marker a
transaction is open for ever.
"""


class MarkerAppends:
    """The appends go to the replica manager, or to the group coordinator for its own partitions."""

    def __init__(self, replicas: ReplicaManager, groups: GroupCoordinator, clock: Clock) -> None:
        self._replicas = replicas
        self._groups = groups
        self._clock = clock

    async def flush(self, markers: Iterable[AppendedMarker]) -> None:
        """Flush those markers that a flush is due for. Whether it was done, `settled` tells."""
        for marker in markers:
            if marker.lacks_flush:
                await self._replicas.flush(marker.partition, marker.end_offset)

    def append(self, topic: str, index: int, marker: Marker) -> AppendedMarker | ErrorCode:
        """Append the marker to one partition, or return why it is not there."""
        partition = self._replicas.get_partition(topic, index)
        if isinstance(partition, ErrorCode):
            return partition
        if not partition.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        try:
            partition.log.producers.check_end_of_transaction(
                marker.producer_id, marker.producer_epoch, marker.transaction_version
            )
            return self._append(partition, marker)
        except ApiError as error:
            return error.code

    def _append(self, partition: Partition, marker: Marker) -> AppendedMarker | ErrorCode:
        if partition.topic == CONSUMER_OFFSETS:
            completed = self._groups.complete_transaction(partition.index, marker)
            return completed if not isinstance(completed, ErrorCode) else _ERRORS_OF_GROUPS.get(completed, completed)
        now_ms = self._clock.now_ms()
        result = self._replicas.append(partition, marker.encode(now_ms), now_ms, ACKS_ALL, AppendOrigin.COORDINATOR)
        return Appended(partition, result.last_offset + 1)
