"""One node in a simulated world: its disk outlives it, so it can crash, lose power and be started again."""

from __future__ import annotations

import random
from collections.abc import Mapping

import trio

from pykbroker.api import HANDLERS
from pykbroker.config import BrokerConfig
from pykbroker.error_groups import first_of
from pykbroker.server.node.environment import Environment
from pykbroker.server.node.node import Node, NodeReady
from pykbroker.storage.files.errors import StorageError
from pykbroker.storage.files.faulty_disk import FaultyDisk

from .clock import SimulatedClock
from .disk import SimulatedDisk
from .network import SimulatedNetwork
from .process import ProcessDied, SimulatedProcess
from .process_disk import ProcessDisk
from .threads import SimulatedThreads

LOG_DIRECTORY = "/data"


class SimulatedNode:
    """A real node on a simulated clock, network, disk and threads. One seed gives one run, see `determinism`."""

    def __init__(
        self,
        rng: random.Random,
        network: SimulatedNetwork,
        *,
        name: str | None = None,
        port: int = 9092,
        overrides: Mapping[str, str] | None = None,
        clock: SimulatedClock | None = None,
        has_calm_threads: bool = False,
        takes_telemetry: bool = False,
    ) -> None:
        """Make the node. name: of its machine in the network, whose links can be cut. overrides: its configuration.

        has_calm_threads: its threads stand still nowhere (`SimulatedThreads`). takes_telemetry: clients may push
        metrics.
        """
        self._rng = rng
        self._host = network.of(name or f"machine of port {port}")
        self._tasks = SimulatedProcess()
        self._has_calm_threads = has_calm_threads
        self._takes_telemetry = takes_telemetry
        self._running: trio.CancelScope | None = None
        self._node: Node | None = None
        self._ended = trio.Event()
        self._is_power_cut = False
        self.failure: BaseException | None = None
        """Why it ended by itself, as a process ends with an exit code and a line."""
        self.clock = clock or SimulatedClock()
        self.disk = SimulatedDisk(random.Random(rng.random()), now_ms=self.clock.now_ms, leaves_garbage=False)
        self.faulty_disk = FaultyDisk(self.disk, random.Random(rng.random()))
        """What the node sees of the disk; it has no faults of its own."""
        self.config = BrokerConfig(
            {
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "log.dirs": LOG_DIRECTORY,
                "group.initial.rebalance.delay.ms": "0",
                **(overrides or {}),
            }
        )

    async def start(
        self, nursery: trio.Nursery, *, dies_at: int | None = None, is_power_cut: bool = False
    ) -> NodeReady:
        """Start it, or start it again; returns when it serves.

        dies_at: the process is killed in front of its change of this number to the disk, or the machine loses power
        there; while it starts too, and what is raised then is `ProcessDied`.
        """
        if not self._host.has_power:
            self._host.gain_power()
        self._tasks = SimulatedProcess()
        self._nursery = nursery
        self.process = ProcessDisk(self.faulty_disk, self._die_at_once)
        self.die_at(dies_at, is_power_cut=is_power_cut)
        self._threads = SimulatedThreads(random.Random(self._rng.random()), are_calm=self._has_calm_threads)
        self._node = Node(
            self.config,
            HANDLERS,
            Environment(
                disk=self.process,
                network=self._host,
                clock=self.clock,
                threads=self._threads,
                rng=random.Random(self._rng.random()),
                takes_telemetry=self._takes_telemetry,
            ),
        )
        self._running = trio.CancelScope()
        self.failure = None
        ready: NodeReady | None = await nursery.start(self._run, self._node, self._running)
        if ready is None:
            raise ProcessDied("while it started")
        return ready

    def die_at(self, change: int | None, *, is_power_cut: bool = False) -> None:
        """Let the process die in front of its change of this number to the disk (`process.changes`). None: not."""
        self.process.dies_at = change
        self._is_power_cut = is_power_cut

    async def stop(self) -> None:
        """A clean shutdown; returns when it is done."""
        assert self._node is not None
        self._node.stop()
        await self._ended.wait()

    async def crash(self, *, silently: bool = False) -> None:
        """The machine loses its power: what was not synced is gone, or half of it is.

        silently: nobody hears of it before it is started again, and then whoever sends something. Otherwise its
        connections are reset, as by a machine that starts again at once.
        """
        if silently:
            self._host.lose_power()
        self._die(is_power_cut=True)
        await self._ended.wait()

    async def kill(self) -> None:
        """The process dies, the machine goes on: everything that was written is there."""
        self._die(is_power_cut=False)
        await self._ended.wait()

    def pause(self) -> None:
        """SIGSTOP: nothing of it runs, its connections stay, and its machine accepts new ones."""
        self._tasks.pause()
        self._nursery.start_soon(self._resume_at_the_end, self._tasks)

    def resume(self) -> None:
        """SIGCONT; also where it is not paused."""
        self._tasks.resume()

    def calm_threads(self) -> None:
        """Let its threads stand still nowhere from now on, after starts to come, too."""
        self._has_calm_threads = self._threads.are_calm = True

    @property
    def is_paused(self) -> bool:
        return self._tasks.is_paused

    async def _resume_at_the_end(self, tasks: SimulatedProcess) -> None:
        """Resume a paused process at the end, since it could not be cancelled."""
        try:
            await self._ended.wait()
        finally:
            tasks.resume()

    def _die_at_once(self) -> None:
        self._die(is_power_cut=self._is_power_cut)

    def _die(self, *, is_power_cut: bool) -> None:
        """End the process: nothing of it reaches the network or the disk any more."""
        assert self._running is not None
        self.process.is_dead = True
        self._threads.die()
        self._running.cancel()
        self._host.die()
        self._tasks.resume()
        if is_power_cut:
            self.disk.crash()
        else:
            self.disk.process_died()

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    async def wait_until_ended(self) -> None:
        """Wait until the process has ended by itself, because of its disk."""
        await self._ended.wait()

    async def lose_power(self) -> None:
        """Crash the machine of a node that has stopped or ended by itself."""
        await self._ended.wait()
        self.disk.crash()

    async def _run(
        self,
        node: Node,
        running: trio.CancelScope,
        *,
        task_status: trio.TaskStatus[NodeReady | None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        self._ended = ended = trio.Event()
        self._tasks.begin()
        try:
            with running:
                await node.run(task_status=task_status)
        except* ProcessDied:
            pass
        except* StorageError as failed:
            if not node.serves:
                raise
            self.failure = first_of(failed)
        finally:
            ended.set()
        if running.cancel_called and not node.serves:
            task_status.started(None)
