"""What goes wrong in a cluster: nodes die, stop or are paused, disks fail, links are cut, slow or lossy."""

from __future__ import annotations

import errno
import itertools

import trio

from pykbroker.sim.process import ProcessDied
from pykbroker.storage.files.faulty_disk import SYNCS, Fault

from .nodes import NODE_IDS, host
from .plan import Kind
from .stage import CLIENTS, ClusterStage

HOSTS = tuple(map(host, NODE_IDS))
_STOPS_WITHIN_S = 6.0
_WHOLE_WITHIN_S = 4.0
_LONGEST_CALM_S = 20.0
"""Between two faults. A run waits for the last one to be over, and gives up half a minute after all is to be quiet."""


class Troublemaker:
    """told: what it did, and when. One thing happens to nodes at a time, links may be bad meanwhile."""

    def __init__(self, stage: ClusterStage) -> None:
        self._stage = stage
        self._plan = stage.plan
        self._rng = stage.rng
        self.told: list[str] = []
        self._unclean: int | None = None
        """Who ended uncleanly last and may lack something yet, where one at a time may."""

    async def run(self) -> None:
        """Until all is quiet; what it has begun is over then."""
        async with trio.open_nursery() as nursery:
            while not self._stage.is_quiet:
                await trio.sleep(min(self._rng.expovariate(1 / self._plan.mean_s), _LONGEST_CALM_S))
                if not self._stage.is_quiet:
                    await self._trouble(nursery)
            nursery.cancel_scope.cancel()

    async def _trouble(self, nursery: trio.Nursery) -> None:
        node_id = self._rng.choice(NODE_IDS)
        match self._rng.randrange(10):
            case 0 | 1 | 2:
                await self._kill_some(node_id)
            case 3:
                await self._restart(node_id)
            case 4:
                await self._pause(node_id)
            case 5 | 6:
                self._cut(host(node_id))
                nursery.start_soon(self._mend)
            case 7:
                self._slow(host(node_id))
            case 8 if self._plan.disks_fail:
                await self._fail_disk(node_id)
            case _:
                self._stage.cut_a_connection()

    def tell(self, *what: object) -> None:
        self.told.append(f"{trio.current_time():8.3f} " + " ".join(map(str, what)))

    # Nodes die

    async def _kill_some(self, node_id: int) -> None:
        if self._plan.kind is Kind.ONE_AT_A_TIME:
            if await self._is_whole():
                self._unclean = node_id
                await self._end(node_id)
                await self._start(node_id)
            return
        others = [each for each in NODE_IDS if each != node_id]
        several = [node_id, *self._rng.sample(others, self._rng.choice((0, 0, 0, 1, 2)))]
        async with trio.open_nursery() as together:
            for each in several:
                together.start_soon(self._die_and_start, each)

    async def _die_and_start(self, node_id: int) -> None:
        await self._stage.pause(50)
        await self._end(node_id)
        await self._start(node_id)

    async def _end(self, node_id: int) -> None:
        """At one of the next changes of its disk, or now."""
        node = self._stage.cluster.nodes[node_id]
        is_power_cut = self._loses_power()
        self._stage.deaths += 1
        if self._rng.random() < 0.5:
            node.die_at(node.process.changes + self._rng.randint(0, 12), is_power_cut=is_power_cut)
            with trio.move_on_after(self._rng.uniform(0.1, 0.5)):
                await node.wait_until_ended()
        node.die_at(None)
        if not node.process.is_dead and is_power_cut:
            await node.crash(silently=self._rng.random() < 0.5)
        elif not node.process.is_dead:
            await node.kill()
        self.tell("node", node_id, "loses power" if is_power_cut else "is killed")

    def _loses_power(self) -> bool:
        """The machine, or else the process dies."""
        return self._plan.kind is not Kind.KILLS and self._rng.random() < 0.7

    async def _start(self, node_id: int) -> None:
        node = self._stage.cluster.nodes[node_id]
        while True:
            await trio.sleep(self._rng.choice((0.05, 0.5, self._plan.away_s)) * self._rng.random())
            self.tell("node", node_id, "starts")
            dies_at = self._rng.randint(0, 60) if self._stage.chance(0.2) else None
            try:
                await node.start(self._stage.nursery, dies_at=dies_at, is_power_cut=self._loses_power())
            except ProcessDied:
                self.tell("node", node_id, "dies as it starts")
                continue
            node.die_at(None)
            if not node.has_ended:
                self.tell("node", node_id, "serves")
                return

    async def _is_whole(self) -> bool:
        """Whether whoever ended uncleanly is in sync again everywhere, as it says itself: it knows of its own end."""
        if self._unclean is None:
            return True
        with trio.move_on_after(_WHOLE_WITHIN_S):
            while not await self._stage.is_in_sync_everywhere(self._unclean):  # noqa: ASYNC110 - nobody tells
                await trio.sleep(0.1)
            return True
        return False

    # Nodes stop, disks fail

    async def _restart(self, node_id: int) -> None:
        """A controlled shutdown, as far as others take part in it."""
        if self._plan.kind is Kind.ONE_AT_A_TIME and not await self._is_whole():
            return
        self._unclean = node_id
        node = self._stage.cluster.nodes[node_id]
        self.tell("node", node_id, "is to stop")
        with trio.move_on_after(_STOPS_WITHIN_S):
            await node.stop()
            self.tell("node", node_id, "has stopped")
        if not node.has_ended:
            await node.kill()
            self.tell("node", node_id, "is killed, for it does not stop")
        await self._start(node_id)

    async def _fail_disk(self, node_id: int) -> None:
        """It is full for a while, or one operation fails, after which a node with one directory ends."""
        node = self._stage.cluster.nodes[node_id]
        path = self._rng.choice(("", "orders", "__transaction_state", "__consumer_offsets", "__cluster_metadata"))
        if self._rng.random() < 0.5:
            self.tell("node", node_id, "has no room for", path or "anything")
            node.faulty_disk.faults = [Fault(errno.ENOSPC, path=path, times=None)]
        else:
            self.tell("node", node_id, "has an error of its disk ahead, in", path or "any file")
            operations = SYNCS if self._rng.random() < 0.3 else frozenset(("append", "replace_file", "truncate"))
            node.faulty_disk.faults = [Fault(errno.EIO, operations, path)]
        with trio.move_on_after(self._rng.uniform(0.2, 1.5)):
            await node.wait_until_ended()
        node.faulty_disk.restart()
        if node.has_ended:
            self._stage.deaths += 1
            self.tell("node", node_id, "has ended:", node.failure)
            await self._start(node_id)
        elif self._plan.directories > 1:
            # One of its directories may be offline, until it starts again.
            await self._restart(node_id)

    async def _pause(self, node_id: int) -> None:
        node = self._stage.cluster.nodes[node_id]
        self.tell("node", node_id, "is paused")
        node.pause()
        await trio.sleep(self._rng.choice((0.2, 1.0, self._plan.away_s)) * self._rng.random())
        self.tell("node", node_id, "goes on")
        node.resume()

    # Links

    def _cut(self, name: str) -> None:
        network = self._stage.network
        others = [each for each in HOSTS if each != name]
        kind = self._rng.choice(("isolated", "deaf", "mute", "bridge", "one way", "without clients"))
        self.tell(name, "is cut off:", kind)
        match kind:
            case "isolated":
                network.split([name], [*others, CLIENTS])
            case "deaf":
                for other in others:
                    network.cut_one_way(other, name)
            case "mute":
                for other in others:
                    network.cut_one_way(name, other)
            case "bridge":
                network.cut(*others)
            case "one way":
                network.cut_one_way(name, self._rng.choice(others))
            case _:
                network.cut(name, CLIENTS)

    async def _mend(self) -> None:
        await trio.sleep(self._rng.choice((0.3, 1.0, self._plan.away_s + 1)) * self._rng.random())
        self.tell("links are mended")
        self._stage.network.heal()

    def _slow(self, name: str) -> None:
        other = self._rng.choice([*HOSTS, CLIENTS])
        if other != name:
            delay_ms, loss = self._rng.choice((0, 10, 50)), self._rng.choice((0.0, 0.02, 0.1))
            self.tell("from", name, "to", other, delay_ms, "ms and loss of", loss)
            self._stage.network.slow(name, other, delay_ms=delay_ms, loss=loss)

    def heal(self) -> None:
        """All links and disks are good, nobody is paused, and no thread stands still."""
        network = self._stage.network
        network.heal()
        for one, other in itertools.product((*HOSTS, CLIENTS), repeat=2):
            network.slow(one, other)
        for node in self._stage.cluster.nodes.values():
            node.resume()
            node.calm_threads()
            node.faulty_disk.restart()

    async def start_all(self) -> None:
        """Whoever has ended."""
        for node_id, node in self._stage.cluster.nodes.items():
            if node.has_ended:
                await self._start(node_id)
