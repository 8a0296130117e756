"""Quorums in simulated runs: everything fails in every way, the invariants hold, and in the end they agree again.

One seed gives one run: how many nodes, which faults, what happens when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import FeatureUpdateKey, UpdateFeaturesRequest
from pykbroker.protocol.messages.control_records import KRaftVersionRecord, VotersRecord
from pykbroker.protocol.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    Listener,
    RemoveRaftVoterRequest,
)
from pykbroker.protocol.schema import Message
from pykbroker.raft.credible_epochs import LAST_EPOCH
from pykbroker.raft.node import Role
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.snapshots import SnapshotId
from pykbroker.raft.voters import KRAFT_VERSIONS, Endpoint, Voter, VoterSet

from .invariants import Invariants
from .memory_log import MemorySnapshot
from .simulated_node import SimulatedNode, directory_of
from .simulated_world import Faults, World
from .voter_scenarios import begin, end, vote

LISTENER = "CONTROLLER"
STRANGER = 77
TROUBLE_MS = 2_000
HEALING_MS = 8_000


class Violation(Exception):
    """An invariant that does not hold; the text names it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """seen: how often what happened."""

    seen: Counter[str]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is made of. observers: nodes that never vote. crash, cut, pause: how often in a second."""

    voters: int
    observers: int
    faults: Faults
    crash: float
    cut: float
    pause: float
    snapshot: float
    proposals: float
    is_dynamic: bool
    """The voters stand in the log, and change; nodes lose their disks."""
    voter_change: float
    is_hasty: bool
    """Who changes voters takes out those whom the leader can't reach, two at once."""
    disk_loss: float
    flush_ms: float
    """Of a disk, at most."""
    upgrade: float
    """How often an administrator wants the voters of `controller.quorum.voters` to stand in the log."""
    has_strangers: bool
    """Who are no members, and say that the epoch is one of the last."""

    @classmethod
    def of(cls, seed: int, rng: Random) -> Plan:
        def sometimes(most: float) -> float:
            return rng.random() * most if rng.random() < 0.6 else 0.0

        faults = Faults(
            loss=sometimes(0.1),
            duplication=sometimes(0.05),
            delay_ms=rng.choice([1.0, 5.0, 30.0]),
            slow=sometimes(0.1),
            old_versions=sometimes(0.2),
        )
        is_dynamic = rng.random() < 0.4
        return cls(
            voters=rng.choice([2, 3, 3, 3, 4, 5]),
            observers=rng.choice([1, 2]) if is_dynamic else rng.choice([0, 0, 1]),
            faults=faults,
            crash=sometimes(5.0),
            cut=sometimes(6.0),
            pause=sometimes(2.0),
            snapshot=sometimes(4.0),
            proposals=rng.choice([10.0, 40.0]),
            is_dynamic=is_dynamic,
            voter_change=rng.choice([2.0, 5.0]) if is_dynamic else 0.0,
            is_hasty=is_dynamic and Random(f"hasty {seed}").random() < 0.5,
            disk_loss=rng.choice([0.0, 1.0]) if is_dynamic else 0.0,
            flush_ms=rng.choice([4.0, 4.0, 40.0]),
            upgrade=0.0 if is_dynamic else Random(f"upgrade {seed}").choice([0.0, 0.0, 2.0]),
            has_strangers=seed % 3 == 1,
        )


def endpoint_of(node_id: int) -> Endpoint:
    return Endpoint(LISTENER, "localhost", node_id)


class Simulation:
    """prepare: is told every node before it starts, such as to plant a bug in it."""

    def __init__(self, seed: int, *, prepare: Callable[[SimulatedNode], None] | None = None, log: bool = False) -> None:
        rng = Random(seed)
        self.plan = Plan.of(seed, rng)
        self.world = World(rng.getrandbits(32), self.plan.faults)
        self.world.has_directories = self.plan.is_dynamic
        if log:
            self.world.log = []
        self.invariants = Invariants()
        self._proposed = 0
        self._is_troubled = True
        self._prepare = prepare
        self._strangers = Random(f"strangers {seed}")
        self._lost_disks = 0
        self._asked: list[tuple[SimulatedNode, int]] = []
        """Who has been asked for a change of the voters and has not answered, and in which life."""
        count = self.plan.voters + self.plan.observers
        voters = VoterSet(_voter(i, is_dynamic=self.plan.is_dynamic) for i in range(1, self.plan.voters + 1))
        for node_id in range(1, count + 1):
            self.world.nodes[node_id] = self._node(node_id, voters, count)

    def _node(self, node_id: int, voters: VoterSet, count: int) -> SimulatedNode:
        is_dynamic = self.plan.is_dynamic
        auto_join = is_dynamic and self.world.rng.random() < 0.5
        replica = LocalReplica(node_id, directory_of(node_id), "cluster", (endpoint_of(node_id),), auto_join=auto_join)
        node = SimulatedNode(self.world, self.invariants, replica, VoterSet.unknown() if is_dynamic else voters)
        if is_dynamic:
            node.bootstrap = [endpoint_of(i) for i in range(1, count + 1) if i != node_id]
            if node_id in voters:
                control = (KRaftVersionRecord(kraft_version=1), voters.to_record())
                node.log.snapshots[SnapshotId(0, 0)] = MemorySnapshot((), control, b"")
                self.invariants.control = [(-1, message) for message in control]
        node.flush_ms = self.plan.flush_ms
        if self._prepare is not None:
            self._prepare(node)
        return node

    def run(self) -> Outcome:
        """Raises Violation."""
        world = self.world
        try:
            for node in world.nodes.values():
                world.at(world.rng.random() * 200, node.start)
            for rate, happening in [
                (self.plan.proposals, self._propose),
                (self.plan.crash, self._crash),
                (self.plan.cut, self._cut),
                (self.plan.pause, self._pause),
                (self.plan.snapshot, self._snapshot),
                (self.plan.voter_change, self._change_voters),
                (self.plan.disk_loss, self._lose_disk),
                (self.plan.upgrade, self._upgrade),
            ]:
                if rate:
                    self._repeat(rate, happening)
            if self.plan.has_strangers:
                self._await_strangers()
            self._run_until(TROUBLE_MS)
            self._heal()
            self._run_until(TROUBLE_MS + HEALING_MS, self._is_settled)
            self._check_settled()
        except AssertionError as error:
            raise Violation(str(error) or "an assertion of the code under test") from error
        world.seen["elections"] = self.invariants.elections
        world.seen["acknowledged"] = len(self.invariants.acknowledged)
        return Outcome(world.seen)

    def _run_until(self, end_ms: float, is_done: Callable[[], bool] | None = None) -> None:
        steps = 0
        while self.world.now_ms < end_ms and self.world.step():
            steps += 1
            self.invariants.check_stale_leaders(self.world.now_ms)
            if is_done is not None and steps % 16 == 0 and is_done():
                return

    def _repeat(self, rate: float, happening: Callable[[], None]) -> None:
        def again() -> None:
            if self._is_troubled or happening == self._propose:
                happening()
                self.world.at(self.world.rng.expovariate(rate) * 1000, again)

        self.world.at(self.world.rng.expovariate(rate) * 1000, again)

    # What happens

    def _any_node(self) -> SimulatedNode:
        return self.world.nodes[self.world.rng.choice(sorted(self.world.nodes))]

    def _propose(self) -> None:
        """To all who think that they lead."""
        for node in self.world.nodes.values():
            if node.is_up and node.propose(f"v{self._proposed}"):
                self._proposed += 1

    def _crash(self) -> None:
        node = self._any_node()
        if node.is_up:
            node.crash()
            self.world.seen["crashes"] += 1
            self.world.note("crash", node.node_id)
            self.world.at(self.world.rng.expovariate(1 / 300), lambda: self._restart(node))

    def _restart(self, node: SimulatedNode) -> None:
        if not node.is_up:
            self.world.note("start", node.node_id)
            node.start()

    def _cut(self) -> None:
        """One node, or one direction between two, for a while."""
        rng, ids = self.world.rng, sorted(self.world.nodes)
        node_id = rng.choice(ids)
        others = [other for other in ids if other != node_id]
        if rng.random() < 0.5:
            other = rng.choice(others)
            cuts = {(node_id, other)}
            self.world.seen["one-way cuts"] += 1
        else:
            cuts = {(node_id, other) for other in others} | {(other, node_id) for other in others}
        self.world.cuts |= cuts
        self.world.note("cut", sorted(cuts))
        self.world.at(rng.expovariate(1 / 900), lambda: self.world.cuts.difference_update(cuts))

    def _pause(self) -> None:
        node = self._any_node()
        if node.is_up and not node.is_paused:
            node.is_paused = True
            self.world.seen["pauses"] += 1
            self.world.note("pause", node.node_id)
            life = node.life
            self.world.at(self.world.rng.expovariate(1 / 400), lambda: self._resume(node, life))

    def _resume(self, node: SimulatedNode, life: int) -> None:
        if node.is_paused and node.is_up and node.life == life:
            node.resume()

    def _snapshot(self) -> None:
        self._any_node().take_snapshot()

    def _change_voters(self) -> None:
        """Where a disk is lost the other voters are needed as they are."""
        for _ in range(2 if self.plan.is_hasty else 1):
            if not self._lost_disks:
                self._ask_for_a_change()

    def _ask_for_a_change(self) -> None:
        """Of whoever leads, as an administrator does."""
        for node in self.world.nodes.values():
            if node.raft is None or node.raft.role is not Role.LEADER:
                continue
            other = self._any_silent_voter(node) if self.plan.is_hasty else self._any_node()
            listener = endpoint_of(other.node_id)
            request: Message
            if node.raft.voters.has(other.replica.key):
                request = RemoveRaftVoterRequest(
                    cluster_id="cluster", voter_id=other.node_id, voter_directory_id=other.replica.directory_id
                )
            else:
                request = AddRaftVoterRequest(
                    cluster_id="cluster",
                    voter_id=other.node_id,
                    voter_directory_id=other.replica.directory_id,
                    listeners=[Listener(name=listener.name, host=listener.host, port=listener.port)],
                )
            self.world.note("ask", node.node_id, request)
            asked = (node, node.life)
            self._asked.append(asked)
            node.receive(request, 0, partial(self._changed, asked))
            return

    def _any_silent_voter(self, leader: SimulatedNode) -> SimulatedNode:
        nodes, cuts = self.world.nodes, self.world.cuts
        others = [nodes[i] for i in leader.raft.voters.ids if i != leader.node_id] if leader.raft is not None else []
        silent = [o for o in others if not o.is_up or o.is_paused or (leader.node_id, o.node_id) in cuts]
        return self.world.rng.choice(silent) if silent else self._any_node()

    def _upgrade(self) -> None:
        """From then on voters come and go."""
        update = FeatureUpdateKey(feature="kraft.version", max_version_level=1)
        for node in self.world.nodes.values():
            if node.raft is not None and node.raft.role is Role.LEADER:
                if node.raft.kraft_version:
                    self._change_voters()
                else:
                    node.receive(UpdateFeaturesRequest(feature_updates=[update]), 2, self._upgraded)
                return

    def _upgraded(self, response: Message) -> None:
        self.world.note(response)
        if response.error_code == ErrorCode.NONE:  # type: ignore[attr-defined]
            self.world.seen["upgrades of kraft.version"] += 1

    def _changed(self, asked: tuple[SimulatedNode, int], response: Message) -> None:
        self._asked.remove(asked)
        self.world.note(response)
        if response.error_code == ErrorCode.NONE:  # type: ignore[attr-defined]
            kind = "voters added" if isinstance(response, AddRaftVoterResponse) else "voters removed"
            self.world.seen[kind] += 1

    def _await_strangers(self) -> None:
        """Chance of their own: what else happens is the same without them."""
        for _ in range(self._strangers.randint(1, 16)):
            self.world.at(self._strangers.random() * TROUBLE_MS, self._say_that_the_epoch_is_far)

    def _say_that_the_epoch_is_far(self) -> None:
        node = self.world.nodes[self._strangers.choice(sorted(self.world.nodes))]
        epoch = LAST_EPOCH - self._strangers.choice([0, 1, LAST_EPOCH // 2])
        request: Message = self._strangers.choice([vote, begin, end])(epoch, STRANGER, cluster="cluster")
        self.world.note("a stranger asks", node.node_id, request)
        if node.is_up:
            node.receive(request, request.__schema__.stable_versions.high, self.world.note)
            self.world.seen["epochs told by strangers"] += 1

    def _lose_disk(self) -> None:
        """Once in a run, where the other voters are enough without it, whichever set of voters comes to count. A change
        that a leader has not begun yet, since it is paused, leads to a set that nobody knows.
        """
        leading = [each for each in self.world.nodes.values() if each.raft and each.raft.role is Role.LEADER]
        node = self.world.rng.choice([self._any_node(), *leading])
        if self._lost_disks or any(asked.life == life for asked, life in self._asked):
            return
        if not all(_are_enough_without(node.replica, each) for each in self._voters_that_may_count()):
            return
        self._lost_disks += 1
        self.world.seen["disks lost"] += 1
        self.world.note("node", node.node_id, "loses its disk")
        node.lose_disk()
        self.world.at(200, lambda: self._restart(node))

    def _voters_that_may_count(self) -> Iterator[VoterSet]:
        """The committed set, and those in any log that are not committed: a member goes by the latest one that it has,
        and whoever has the longest log must be elected. So as long as a change is open a majority of both sets has to
        stay, whatever a leader without that record counts. It is so wherever voters change one at a time, Kafka's
        included: of three voters one leaves, the other two are two, and a lost disk of these is the quorum's.
        """
        committed = [message for _, message in self.invariants.control if isinstance(message, VotersRecord)]
        yield VoterSet.from_record(committed[-1], LISTENER)
        end_offset = len(self.invariants.committed)
        for node in self.world.nodes.values():
            for offset, message in node.log.control_records():
                if offset >= end_offset and isinstance(message, VotersRecord):
                    yield VoterSet.from_record(message, LISTENER)
            if node.raft is not None:
                yield node.raft.voters  # which may still be on its way into the log

    # The end

    def _heal(self) -> None:
        self.world.note("all is well again")
        self._is_troubled = False
        self.world.faults = Faults(delay_ms=5.0)
        self.world.cuts.clear()
        self._proposed_before_healing = self._proposed
        self._acknowledged_before = len(self.invariants.acknowledged)
        for node in self.world.nodes.values():
            if not node.is_up:
                node.start()
            elif node.is_paused:
                node.resume()

    def _is_settled(self) -> bool:
        """Somebody leads, new records are committed, and everybody has all of them but the last few."""
        if not self._leaders():
            return False
        if len(self.invariants.acknowledged) < self._acknowledged_before + 3:
            return False
        known = [node.raft.high_watermark for node in self.world.nodes.values() if node.raft is not None]
        return min(known) >= len(self.invariants.committed) - 2

    def _leaders(self) -> list[SimulatedNode]:
        return [node for node in self.world.nodes.values() if node.raft is not None and node.raft.role is Role.LEADER]

    def _check_settled(self) -> None:
        nodes = self.world.nodes.values()
        states = [
            (n.node_id, n.raft.role.name, n.raft.epoch, n.raft.high_watermark) for n in nodes if n.raft is not None
        ]
        assert self._is_settled(), f"EventuallyCommits: {HEALING_MS} ms later the nodes are {states}"
        newest = max(self._leaders(), key=lambda node: node.raft.epoch if node.raft is not None else 0)
        assert newest.raft is not None
        assert newest.raft.epoch < 10_000, f"EpochsRemain: the quorum is taken to epoch {newest.raft.epoch}"
        for offset, (epoch, value) in self.invariants.acknowledged:
            if offset >= newest.log.start_offset:
                [held] = newest.log.entries(offset, offset + 1)
                assert held == (epoch, value), f"AcknowledgedIsReadable: {value} at {offset} is {held}"


def simulate(seed: int) -> Outcome:
    return Simulation(seed).run()


def _are_enough_without(replica: LocalReplica, voters: VoterSet) -> bool:
    """Also where that replica is about to become a voter: what asks for it may be on its way, and a leader that takes
    it up can't know that the disk is gone.
    """
    with_it = voters.with_voter(Voter(replica.node_id, "localhost", replica.node_id, replica.directory_id))
    others = sum(voter.node_id != replica.node_id for voter in voters)
    return others >= with_it.majority


def _voter(node_id: int, *, is_dynamic: bool) -> Voter:
    if not is_dynamic:
        return Voter(node_id, "localhost", node_id)
    return Voter(node_id, "localhost", node_id, directory_of(node_id), (endpoint_of(node_id),), KRAFT_VERSIONS)
