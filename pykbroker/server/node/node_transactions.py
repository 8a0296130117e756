"""A node's parts for transactions at work: coordinator, markers, the way to other brokers, producer ids.

Handlers reach them as `Broker.transactions`.
"""

from __future__ import annotations

from dataclasses import dataclass

import trio

from ..coordinators.marker_appends import MarkerAppends
from ..coordinators.producer_ids import ProducerIds
from ..coordinators.transaction_coordinator import TransactionCoordinator
from ..coordinators.transaction_markers import TransactionMarkers
from ..coordinators.transaction_membership import TransactionMembership
from ..network.inter_broker import InterBroker


@dataclass(frozen=True, slots=True)
class NodeTransactions:
    coordinator: TransactionCoordinator
    membership: TransactionMembership
    markers: TransactionMarkers
    marker_appends: MarkerAppends
    producer_ids: ProducerIds
    inter_broker: InterBroker

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the coordinator, the markers and the supply of producer ids until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.producer_ids.run)
                await nursery.start(self.markers.run)
                await nursery.start(self.coordinator.run)
                task_status.started()
        finally:
            with trio.CancelScope(shield=True):
                await self.inter_broker.aclose()
