"""Kills, freezes and separates nodes: one fault at a time, in an order from a seed, each undone after some seconds."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

from compat_tests.clusters.cluster import Cluster
from compat_tests.clusters.view import ClusterView, NoAnswer
from compat_tests.waiting import until

from .network import CLIENTS, Network

LEADER, FOLLOWER, CONTROLLER = ROLES = ("leader", "follower", "controller")
"""Who is hit: the leader of some partition, one of its followers, the active controller."""

SESSION_TIMEOUT_S = 6.0
"""Of brokers, in a run: a freeze is shorter, or longer by some seconds."""
SHORTEST_S, LONGEST_S = 1.0, 10.0
RECOVERY_DEADLINE_S = 120.0
"""Until every partition has all its replicas in sync again."""
_WAITS_FOR_RECOVERY = 0.6
"""How likely; otherwise the next fault meets a cluster that is still busy with the last one."""

Say = Callable[[str], None]
Fault = Callable[[int], Iterator[str]]


class Nemesis:
    """network: None where nodes share the loopback interface: then there is nothing to separate."""

    def __init__(self, cluster: Cluster, network: Network | None, seed: int, say: Say) -> None:
        self._cluster = cluster
        self._network = network
        self._rng = random.Random(seed)
        self._say = say
        self._ids = sorted(cluster.nodes)
        self._faults: dict[str, Fault] = {
            "kill -9": self._kill,
            "stop": self._stop,
            "short freeze": self._freeze_for_a_moment,
            "long freeze": self._freeze,
        }
        if network is not None:
            self._faults |= {
                "isolated from nodes": self._isolate,
                "isolated from all": self._isolate_from_all,
                "mute": self._mute,
                "deaf": self._deafen,
                "bridge": self._bridge,
            }
        self.done: Counter[tuple[str, str]] = Counter()
        """Faults, each with the role that was hit."""

    def work_for(self, seconds: float) -> None:
        """Raises AssertionError where the cluster does not recover."""
        until_s = time.monotonic() + seconds
        for name, role in self._endless_plan():
            if time.monotonic() > until_s:
                return
            self._hit(name, role)

    def recover(self) -> None:
        """Everything runs and reaches everything."""
        if self._network is not None:
            self._network.heal()
        for node in self._cluster.nodes.values():
            if node.is_paused:
                node.resume()
        self._cluster.start()

    def wait_until_in_sync(self) -> None:
        until(self._all_in_sync, "all replicas are in sync", RECOVERY_DEADLINE_S)

    def _endless_plan(self) -> Iterator[tuple[str, str]]:
        """Each kind once in every turn, so that a short run has met all of them; after three turns, with each role."""
        while True:
            first = {name: self._rng.randrange(len(ROLES)) for name in self._faults}
            for turn in range(len(ROLES)):
                for name in self._rng.sample(list(self._faults), len(self._faults)):
                    yield name, ROLES[(first[name] + turn) % len(ROLES)]

    def _hit(self, name: str, role: str) -> None:
        lasts_s = self._rng.uniform(SHORTEST_S, LONGEST_S)
        if name == "long freeze":
            lasts_s = self._rng.uniform(SESSION_TIMEOUT_S + 2, LONGEST_S + 2)
        elif name == "short freeze":
            lasts_s = self._rng.uniform(SHORTEST_S, SESSION_TIMEOUT_S - 2)
        victim = self._victim(role)
        for text in self._faults[name](victim):
            self._say(f"{text} ({role}) for {lasts_s:.1f} s")
            self.done[name, role] += 1
            time.sleep(lasts_s)
        if self._rng.random() < _WAITS_FOR_RECOVERY:
            began_s = time.monotonic()
            self.wait_until_in_sync()
            self._say(f"in sync after {time.monotonic() - began_s:.1f} s")

    def _victim(self, role: str) -> int:
        """Raises AssertionError where nobody has that role."""
        found: list[int] = []

        def is_found() -> bool:
            with suppress(NoAnswer):
                found.extend(self._who_is(role))
            return bool(found)

        until(is_found, f"there is a {role}", RECOVERY_DEADLINE_S)
        return self._rng.choice(found)

    def _who_is(self, role: str) -> list[int]:
        """By partition. Raises NoAnswer."""
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
        """Longer than its session: others take its place, and it wakes up as who it was."""
        self._cluster.pause(victim)
        yield f"freeze node {victim}"
        self._cluster.resume(victim)

    def _freeze_for_a_moment(self, victim: int) -> Iterator[str]:
        """Shorter: it stays who it is."""
        yield from self._freeze(victim)

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
