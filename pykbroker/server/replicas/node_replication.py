"""A node follows other leaders, and keeps the ISR of the partitions that it leads.

`NodeReplication.run` runs the fetchers, the proposals to the controller (`alter_partition.IsrChanges`), a look for
laggards each half of `replica.lag.time.max.ms`, and one line in the log when the counts of partitions that lack
replicas have changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from ..runtime.clock import Clock
from ..runtime.turns import Turn
from .alter_partition import Submit
from .replica_fetcher import ReplicaFetchers
from .replica_manager import ReplicaManager, ReplicationCounts

logger = logging.getLogger(__name__)

_COUNT_INTERVAL_S = 5
_STEPS_PER_LOOK = 6
"""The look at one partition's followers takes so many steps; more where somebody is to be told."""


@dataclass(slots=True)
class NodeReplication:
    replicas: ReplicaManager
    fetchers: ReplicaFetchers
    lag_time_max_ms: int
    clock: Clock
    told: ReplicationCounts = field(default_factory=ReplicationCounts)

    async def run(self, submit: Submit, broker_epoch: Callable[[], int]) -> None:
        """Replicate until the task is cancelled. submit: asks the controller. broker_epoch: the registration's."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.fetchers.run, broker_epoch)
            nursery.start_soon(self.replicas.isr_changes.run, submit, broker_epoch)
            nursery.start_soon(self._shrink_isrs)
            nursery.start_soon(self._tell_counts)

    async def _shrink_isrs(self) -> None:
        while True:
            await trio.sleep(max(self.lag_time_max_ms / 2, 1) / 1000)
            turn = Turn()
            for partition in self.replicas.partitions():
                partition.maybe_shrink_isr(self.clock.monotonic_ms())  # nothing, where it is gone meanwhile
                await turn.took(_STEPS_PER_LOOK)

    async def _tell_counts(self) -> None:
        """One line when something is not as it should be, or is again."""
        while True:
            await trio.sleep(_COUNT_INTERVAL_S)
            counts = self.replicas.replication_counts()
            if counts != self.told:
                level = logging.WARNING if any(counts) else logging.INFO
                logger.log(level, "%d under-replicated, %d under-min-ISR, %d offline partitions", *counts)
                self.told = counts
