"""Kills, freezes and separates nodes: one fault at a time, as planned, each undone after some seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from compat_tests.clusters.cluster import Cluster
from compat_tests.clusters.view import ClusterView, NoAnswer
from compat_tests.waiting import until

from .journal import FaultEntry, Journal
from .network import CLIENTS, Network
from .plan import (
    ABSENCE,
    BRIDGE,
    CONTROLLER,
    DEAF,
    ISOLATION,
    KILL,
    LEADER,
    LONG_FREEZE,
    MUTE,
    SHORT_FREEZE,
    STOP,
    TOTAL_ISOLATION,
    PlannedFault,
)
from .returns import ReturnWatch

RECOVERY_DEADLINE_S = 120.0
"""Until every partition has all its replicas in sync again, where nothing else is asked for."""

Say = Callable[[str], None]
Fault = Callable[[int], Iterator[str]]


class Nemesis:
    """plan: the faults, in their order. network: None where nodes share the loopback interface, where there is nothing
    to separate. back_within_s: how long after the end of a fault all replicas may need to be in sync again, and each
    node that no other fault has hit since to be back.
    """

    def __init__(
        self,
        cluster: Cluster,
        network: Network | None,
        plan: Iterator[PlannedFault],
        journal: Journal,
        watch: ReturnWatch,
        say: Say,
        *,
        back_within_s: float = RECOVERY_DEADLINE_S,
    ) -> None:
        self._cluster = cluster
        self._network = network
        self._plan = plan
        self._journal = journal
        self._watch = watch
        self._say = say
        self._back_within_s = back_within_s
        self._began_s = time.monotonic()
        self._ids = sorted(cluster.nodes)
        self._faults: dict[str, Fault] = {
            KILL: self._kill,
            STOP: self._stop,
            SHORT_FREEZE: self._freeze,
            LONG_FREEZE: self._freeze,
            ABSENCE: self._kill,
            ISOLATION: self._isolate,
            TOTAL_ISOLATION: self._isolate_from_all,
            MUTE: self._mute,
            DEAF: self._deafen,
            BRIDGE: self._bridge,
        }

    def work_for(self, seconds: float) -> None:
        """Raises AssertionError where the cluster does not recover."""
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s and (fault := next(self._plan, None)) is not None:
            self._hit(fault)
            self._watch.assert_nobody_is_late(self._back_within_s)

    def recover(self) -> None:
        """Everything runs and reaches everything."""
        if self._network is not None:
            self._network.heal()
        for node in self._cluster.nodes.values():
            if node.is_paused:
                node.resume()
        self._cluster.start()

    def wait_until_in_sync(self, since_s: float | None = None) -> None:
        """Raises AssertionError where that takes too long. since_s: the end of the last fault, or now."""
        waited_s = time.monotonic() - since_s if since_s is not None else 0
        until(self._all_in_sync, "all replicas are in sync", max(self._back_within_s - waited_s, 0))

    def _hit(self, fault: PlannedFault) -> None:
        victim = fault.choose(self._candidates(fault.role)) if fault.node is None else fault.node
        self._watch.begin_fault(self._others(victim) if fault.kind == BRIDGE else [victim])
        began_s = time.monotonic()
        for text in self._faults[fault.kind](victim):
            self._say(f"{text} ({fault.role}) for {fault.lasts_s:.1f} s")
            time.sleep(fault.lasts_s)
            ended_s = time.monotonic()
        returns = self._watch.end_fault(ended_s)
        back_after_s = self._wait_for_return(ended_s) if fault.waits else None
        self._journal.note(
            FaultEntry(
                fault.kind,
                fault.role,
                fault.draw,
                fault.lasts_s,
                fault.waits,
                node=victim,
                began_s=round(began_s - self._began_s, 3),
                ended_s=round(ended_s - self._began_s, 3),
                back_after_s=back_after_s,
            ),
            returns,
        )

    def _wait_for_return(self, ended_s: float) -> float:
        """Return how long after the end of a fault all replicas were in sync. Raises AssertionError."""
        self.wait_until_in_sync(ended_s)
        back_after_s = round(time.monotonic() - ended_s, 3)
        self._say(f"in sync {back_after_s:.1f} s after the fault")
        return back_after_s

    def _candidates(self, role: str) -> list[int]:
        """Return who has the role, in the order of the node ids. Raises AssertionError where nobody has."""
        found: set[int] = set()

        def is_found() -> bool:
            with suppress(NoAnswer):
                found.update(self._who_is(role))
            return bool(found)

        until(is_found, f"there is a {role}", RECOVERY_DEADLINE_S)
        return sorted(found)

    def _who_is(self, role: str) -> list[int]:
        """Raises NoAnswer."""
        if role == CONTROLLER:
            leader = self._cluster.quorum().leader
            return [leader] if leader in self._ids else []
        topics = self._cluster.view().topics
        partitions = [each for topic in topics.values() for each in topic.values() if each.leader in self._ids]
        if role == LEADER:
            return [each.leader for each in partitions]
        return [follower for each in partitions for follower in each.replicas if follower != each.leader]

    # Each fault: what it does before its `yield` is undone behind it

    def _kill(self, victim: int) -> Iterator[str]:
        self._cluster.kill(victim)
        yield f"kill -9 node {victim}"
        self._cluster.start(victim)

    def _stop(self, victim: int) -> Iterator[str]:
        self._cluster.stop(victim)
        yield f"stop node {victim}"
        self._cluster.start(victim)

    def _freeze(self, victim: int) -> Iterator[str]:
        """A longer freeze than its session: others take its place, and it wakes up as who it was."""
        self._cluster.pause(victim)
        yield f"freeze node {victim}"
        self._cluster.resume(victim)

    def _isolate(self, victim: int) -> Iterator[str]:
        """Clients still reach it."""
        for other in self._others(victim):
            self._net.separate(victim, other)
        yield f"isolate node {victim} from the others"
        self._net.heal()

    def _isolate_from_all(self, victim: int) -> Iterator[str]:
        for other in [*self._others(victim), CLIENTS]:
            self._net.separate(victim, other)
        yield f"isolate node {victim} from the others and from clients"
        self._net.heal()

    def _mute(self, victim: int) -> Iterator[str]:
        for other in self._others(victim):
            self._net.cut(victim, other)
        yield f"let node {victim} send nothing to the others"
        self._net.heal()

    def _deafen(self, victim: int) -> Iterator[str]:
        for other in self._others(victim):
            self._net.cut(other, victim)
        yield f"let node {victim} hear nothing from the others"
        self._net.heal()

    def _bridge(self, victim: int) -> Iterator[str]:
        """Two others do not reach each other, and this one reaches both."""
        left, right = self._others(victim)[::2], self._others(victim)[1::2]
        for one in left:
            for other in right:
                self._net.separate(one, other)
        yield f"leave node {victim} as the bridge between the others"
        self._net.heal()

    @property
    def _net(self) -> Network:
        assert self._network is not None
        return self._network

    def _others(self, victim: int) -> list[int]:
        return [each for each in self._ids if each != victim]

    def _all_in_sync(self) -> bool:
        """As every node tells it: one that was cut off may not have heard yet of what happened meanwhile."""
        try:
            return all(self._has_all_in_sync(self._cluster.view(of=each)) for each in self._ids)
        except NoAnswer:
            return False

    def _has_all_in_sync(self, view: ClusterView) -> bool:
        partitions = [each for topic in view.topics.values() for each in topic.values()]
        return all(each.leader in self._ids and each.isr >= set(each.replicas) for each in partitions)
