"""A node's parts for the state of share groups at work: the share coordinator, and the way to all of them (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from pykbroker.sharing.persister import Persister

from ..coordinators.share_coordinator import ShareCoordinator
from ..coordinators.share_persister import SharePersister


@dataclass(frozen=True, slots=True)
class NodeSharing:
    """The parts, made once.

    persister: for this node's partition leaders and its group coordinator. questions: runs, and is the persister unless
    another one was configured.
    """

    coordinator: ShareCoordinator
    questions: SharePersister
    persister: Persister

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run both until cancelled."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.questions.run)
            await nursery.start(self.coordinator.run)
            task_status.started()
