"""One node in a simulated world: its disk outlives it, so it can crash, lose power and be started again."""

from __future__ import annotations

import random
from collections.abc import Mapping

import trio

from pykbroker.api import HANDLERS
from pykbroker.config import BrokerConfig
from pykbroker.server.node import Node, Ready

from .clock import SimulatedClock
from .disk import SimulatedDisk
from .network import SimulatedNetwork
from .threads import SimulatedThreads

LOG_DIRECTORY = "/data"


class SimulatedNode:
    """Everything of a node that is not simulated is the real one. One seed gives one run, see `determinism`."""

    def __init__(
        self,
        rng: random.Random,
        network: SimulatedNetwork,
        *,
        port: int = 9092,
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        self._rng = rng
        self._network = network
        self._running: trio.CancelScope | None = None
        self._node: Node | None = None
        self._ended = trio.Event()
        self.clock = SimulatedClock()
        self.disk = SimulatedDisk(random.Random(rng.random()))
        self.config = BrokerConfig(
            {
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "log.dirs": LOG_DIRECTORY,
                "group.initial.rebalance.delay.ms": "0",
                **(overrides or {}),
            }
        )

    async def start(self, nursery: trio.Nursery) -> Ready:
        """Start it, or start it again; returns when it serves."""
        self._node = Node(
            self.config,
            handlers=HANDLERS,
            disk=self.disk,
            network=self._network,
            clock=self.clock,
            threads=SimulatedThreads(random.Random(self._rng.random())),
            rng=random.Random(self._rng.random()),
        )
        self._running = trio.CancelScope()
        ready: Ready = await nursery.start(self._run, self._node, self._running)
        return ready

    async def stop(self) -> None:
        """A clean shutdown; returns when it is done."""
        assert self._node is not None
        self._node.stop()
        await self._ended.wait()

    async def crash(self) -> None:
        """The machine loses its power: what was not synced is gone, or half of it is."""
        assert self._running is not None
        self._running.cancel()
        self.disk.crash()
        await self._ended.wait()

    async def _run(
        self, node: Node, running: trio.CancelScope, *, task_status: trio.TaskStatus[Ready] = trio.TASK_STATUS_IGNORED
    ) -> None:
        self._ended = ended = trio.Event()
        try:
            with running:
                await node.run(task_status=task_status)
        finally:
            ended.set()
