"""The broker role of a node at work: the tasks that run from its registration to its end."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from ..replicas.directory_assignments import DirectoryAssignments
from ..replicas.node_replication import NodeReplication
from .broker import Broker
from .broker_lifecycle import BrokerLifecycle


@dataclass(frozen=True, slots=True)
class BrokerRole:
    broker: Broker
    replication: NodeReplication
    directory_assignments: DirectoryAssignments
    lifecycle: BrokerLifecycle

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled; started when the broker is unfenced. Raises RegistrationError, StorageError."""
        broker = self.broker
        async with trio.open_nursery() as nursery:
            await nursery.start(broker.partitions.run)
            await nursery.start(broker.groups.run)
            await nursery.start(broker.transactions.run)
            await nursery.start(broker.sharing.run)
            await nursery.start(broker.share_partitions.run)
            await nursery.start(self.lifecycle.run)
            submit, epoch = broker.controller_channel.submit, lambda: self.lifecycle.epoch
            nursery.start_soon(self.replication.run, submit, epoch)
            nursery.start_soon(self.directory_assignments.run)
            nursery.start_soon(broker.auto_topic_creation.run)
            await nursery.start(broker.log_moves.run)
            if broker.telemetry is not None:
                nursery.start_soon(broker.telemetry.run)
            task_status.started()
