"""One run: three brokers, their controller, clients, what goes wrong, and how it has to end."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from pykbroker.metadata.partition_state import PartitionState
from pykbroker.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

from .broker import TOPIC, SimulatedBroker
from .clients import Consumer, Producer
from .controller import SimulatedController
from .events import Events
from .invariants import Invariants, ensure
from .wires import Wires

BROKERS = (1, 2, 3)
MOST_QUIET_MS = 20_000
CALM_MS = 4_000
LONGEST_MESSAGE_MS = 1_000
DEPOSED_AFTER_MS = 1_100


@dataclass(frozen=True, slots=True)
class Plan:
    """What kind of a run it is.

    has_elr: eligible leader replicas are kept (KIP-966). flushes: each message, before it counts as replicated.
    power_cuts: machines lose what was not flushed. Without either of those that would lose what was acknowledged:
    acks=all promises that all in-sync replicas have it in memory, no more. With eligible leader replicas and a minimum
    of two in sync, one broker at a time may end uncleanly, be it by a kill, which the controller cannot tell from a
    power cut; where each message is flushed, all of them may.

    breaks_off: followers do not wait for the answers of all their fetches, and in the end nothing fails for a while in
    which nobody may fall behind. slow_disks: some flushes take long. late_looks: some producers' requests wait for
    something else first, and see late what became of their batch.
    """

    min_isr: int
    has_elr: bool
    flushes: bool
    power_cuts: bool
    loss: float
    duplication: float
    longest_delay_ms: float
    slow_commits: float
    mean_between_faults_ms: float
    lasts_ms: float
    breaks_off: bool
    slow_disks: bool
    late_looks: bool

    @classmethod
    def of(cls, seed: int) -> Plan:
        rng, waits = random.Random(f"plan {seed}"), random.Random(f"waits {seed}")
        kind = rng.choice(("kills", "kills", "elr", "elr with power cuts", "flushes with power cuts"))
        has_elr = kind.startswith("elr")
        return cls(
            min_isr=2 if has_elr else rng.choice((1, 2)),
            has_elr=has_elr,
            flushes=kind.startswith("flushes"),
            power_cuts=kind.endswith("power cuts"),
            loss=rng.choice((0.0, 0.01, 0.05)),
            duplication=rng.choice((0.0, 0.0, 0.05)),
            longest_delay_ms=rng.choice((1.0, 5.0, 20.0)),
            slow_commits=rng.choice((0.1, 0.1, 0.7)),
            mean_between_faults_ms=rng.choice((150.0, 400.0)),
            lasts_ms=rng.uniform(1500, 4000),
            breaks_off=waits.random() < 0.2,
            slow_disks=waits.random() < 0.7,
            late_looks=waits.random() < 0.3,
        )

    @property
    def topic_properties(self) -> dict[str, str]:
        properties = {"min.insync.replicas": str(self.min_isr)}
        if self.flushes:
            properties["flush.messages"] = "1"
        return properties


class World:
    def __init__(self, seed: int, *, is_told: bool = False) -> None:
        self.seed = seed
        self.plan = plan = Plan.of(seed)
        self.rng = rng = random.Random(seed)
        self.events = Events()
        self.is_healed = False
        self.is_calm = False
        self.is_quiet = False
        self.faults = 0
        self.elections = 0
        self._is_told = is_told
        self._waits_rng = random.Random(f"waits of all {seed}")
        self.invariants = Invariants(flushes=plan.flushes)
        self.wires = Wires(
            self.events,
            random.Random(rng.random()),
            longest_delay_ms=plan.longest_delay_ms,
            loss=plan.loss,
            duplication=plan.duplication,
        )
        self.controller = SimulatedController(
            self.events,
            random.Random(rng.random()),
            has_elr=plan.has_elr,
            slow_commits=plan.slow_commits,
        )
        self.controller.on_commit = self._on_commit
        self.brokers = {each: SimulatedBroker(each, self, random.Random(rng.random())) for each in BROKERS}
        self.producers: list[Producer] = []
        self._values = 0

    def note(self, *what: object) -> None:
        if self._is_told:
            print(f"{self.events.now_ms:9.2f}", *what)  # noqa: T201

    def new_values(self, count: int) -> list[int]:
        self._values += count
        return list(range(self._values - count, self._values))

    @property
    def state(self) -> PartitionState:
        topic = self.controller.image.topic(TOPIC)
        assert topic is not None
        return topic.partitions[0]

    def guess_leader(self, rng: random.Random) -> SimulatedBroker:
        """What some broker takes for the leader, or nobody does."""
        one = self.brokers[rng.choice(BROKERS)]
        if rng.random() < 0.9 and one.is_up and one.partition is not None:
            return self.brokers.get(one.partition.leader, one)
        return one

    # The course of a run

    def run(self) -> None:
        """Raises Violated."""
        self._begin()
        self._go_on(self.plan.lasts_ms)
        self._heal()
        if self.plan.breaks_off:
            self._stay_calm()
        self.is_quiet = True
        self._go_on_until(self._is_settled)
        self._check_the_end()

    def _stay_calm(self) -> None:
        """Nothing fails any more but that followers break off their long polls, and then one batch comes.

        A batch that hangs is not helped on by the next one.
        """
        self.wires.longest_delay_ms = 1.0
        self._go_on(LONGEST_MESSAGE_MS)
        self._go_on_until(lambda: len(self.state.isr) == len(BROKERS) and self._are_all_registered())
        self.is_calm = True
        self._go_on(CALM_MS)
        self.is_calm = False

    def _are_all_registered(self) -> bool:
        """None is a process that the controller still takes for the one before it, and fences later."""
        registered = self.controller.image.brokers
        return all(
            not registered[each.id].fenced and registered[each.id].epoch == each.broker_epoch
            for each in self.brokers.values()
        )

    def _go_on_until(self, condition: Callable[[], bool]) -> None:
        end = self.events.now_ms + MOST_QUIET_MS
        while not condition():
            self._step()
            ensure(self.events.now_ms < end, "Liveness", "it does not settle:", self.state, self._where_they_are())

    def _begin(self) -> None:
        self.controller.begin()
        for broker in self.brokers.values():
            broker.begin()
        while sum(not each.fenced for each in self.controller.image.brokers.values()) < len(BROKERS):
            self._step()
        assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=list(BROKERS))]
        configs = [CreatableTopicConfig(name=name, value=value) for name, value in self.plan.topic_properties.items()]
        topic = CreatableTopic(
            name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=configs
        )
        self.controller.handle(CreateTopicsRequest(topics=[topic], timeout_ms=1000), lambda answer: None)
        self.producers = [Producer(number, self, random.Random(self.rng.random())) for number in (1, 2)]
        for number in (1, 2):
            Consumer(number, self, random.Random(self.rng.random()))
        while self.controller.image.topic(TOPIC) is None:
            self._step()
        self._plan_fault()
        if self.plan.breaks_off:
            self._break_off()

    def _go_on(self, for_ms: float) -> None:
        end = self.events.now_ms + for_ms
        while self.events.now_ms < end:
            self._step()

    def _step(self) -> None:
        self.events.step()
        self.invariants.check(
            (each.partition, each.serves) for each in self.brokers.values() if each.partition is not None
        )

    def _on_commit(self) -> None:
        topic = self.controller.image.topic(TOPIC)
        if topic is not None:
            state = topic.partitions[0]
            self.note("metadata:", f"leader {state.leader}/{state.leader_epoch} isr {state.isr}", _elr(state))
            self.invariants.check_metadata(state)
            if self.is_calm:
                ensure(len(state.isr) == len(BROKERS), "NobodyFallsBehind", state, self._where_they_are())
            self.elections = state.leader_epoch
        for broker in self.brokers.values():
            self.send_metadata(broker)

    def send_metadata(self, broker: SimulatedBroker) -> None:
        """What it does not have, as far as the controller knows; it may not arrive."""
        if not broker.is_up:
            return
        controller = self.controller
        begin = broker.image_end
        records = controller.log[begin : controller.committed]
        if records:
            self.wires.send(controller.name, broker.name, broker.bound(lambda: broker.take_metadata(begin, records)))

    # What goes wrong

    def _plan_fault(self) -> None:
        self.events.after(self.rng.expovariate(1 / self.plan.mean_between_faults_ms), self._fault)

    def _fault(self) -> None:
        if self.is_healed:
            return
        self._plan_fault()
        self.faults += 1
        broker = self.brokers[self.rng.choice(BROKERS)]
        if self.plan.slow_commits > 0.5 and self.rng.random() < 0.3:
            self._fail_over()
            return
        if self.plan.late_looks and self._waits_rng.random() < 0.4:
            self._depose()
            return
        match self.rng.randrange(10):
            case 0 | 1 | 2 | 3:
                self._kill(broker)
            case 4 | 5:
                self._pause(broker)
            case 6:
                self._fail_over()
            case _:
                self._cut(broker.name)

    def _break_off(self) -> None:
        """All followers break their long polls off, as when a topic is created; not before the last time is over."""
        self.events.after(self._waits_rng.uniform(900, 1200), self._break_off)
        for broker in self.brokers.values():
            if broker.is_up and not self.is_quiet:
                self.events.after(self._waits_rng.uniform(0, 5), broker.bound(broker.break_off))
        if self.is_calm:
            self.events.after(self._waits_rng.uniform(0, 10), self.producers[0].send_one)

    def _depose(self) -> None:
        """The leader is cut off until there is another one, which dies when the first may lead again."""
        leader = self.brokers.get(self.state.leader)
        if leader is None or len(self.state.isr) < len(BROKERS):
            return
        others = [each.name for each in (*self.brokers.values(), self.controller) if each is not leader]
        cut = {(leader.name, other) for other in others} | {(other, leader.name) for other in others}
        self.note("cut:", sorted(cut))
        self.wires.cuts |= cut
        self.events.after(DEPOSED_AFTER_MS, lambda: self._mend(cut))
        self.events.after(DEPOSED_AFTER_MS + self._waits_rng.uniform(100, 500), lambda: self._kill_leader(leader))

    def _kill_leader(self, unless: SimulatedBroker) -> None:
        leader = self.brokers.get(self.state.leader)
        if leader is not None and leader is not unless and not self.is_healed:
            self._kill(leader)

    def _fail_over(self) -> None:
        self.note("the controller fails over")
        self.controller.fail_over()

    def _kill(self, broker: SimulatedBroker) -> None:
        if not broker.is_up:
            return
        is_power_cut = self.plan.power_cuts and self.rng.random() < 0.6
        others = [each for each in self.brokers.values() if each is not broker]
        if self.plan.power_cuts and self.plan.has_elr and any(each.is_dirty for each in others):
            return
        self.note(broker.name, "loses power" if is_power_cut else "is killed", self._where_they_are())
        broker.die(is_power_cut=is_power_cut)
        self.events.after(self.rng.choice((20, 300, 1500)) * self.rng.random(), lambda: self._start(broker))

    def _start(self, broker: SimulatedBroker) -> None:
        if not broker.is_up:
            self.note(broker.name, "starts")
            broker.begin()

    def _pause(self, broker: SimulatedBroker) -> None:
        if broker.is_up and not broker.is_paused:
            self.note(broker.name, "is paused")
            broker.pause()
            self.events.after(self.rng.choice((100, 700, 2000)) * self.rng.random(), lambda: self._resume(broker))

    def _resume(self, broker: SimulatedBroker) -> None:
        if broker.is_paused:
            self.note(broker.name, "goes on")
            broker.resume()

    def _cut(self, name: str) -> None:
        others = [each.name for each in (*self.brokers.values(), self.controller) if each.name != name]
        cut = {(name, other) for other in self.rng.sample(others, self.rng.randint(1, len(others)))}
        match self.rng.randrange(3):
            case 0:
                cut |= {(other, source) for source, other in cut}
            case 1:
                cut = {(other, source) for source, other in cut}
        self.note("cut:", sorted(cut))
        self.wires.cuts |= cut
        self.events.after(self.rng.choice((100, 700, 2000)) * self.rng.random(), lambda: self._mend(cut))

    def _mend(self, cut: set[tuple[str, str]]) -> None:
        self.wires.cuts -= cut

    # How it ends

    def _heal(self) -> None:
        self.note("all is quiet")
        self.is_healed = True
        self.wires.heal()
        for broker in self.brokers.values():
            self._resume(broker)
            self._start(broker)

    def _is_settled(self) -> bool:
        if not all(each.is_idle for each in self.producers) or len(self.state.isr) < len(BROKERS):
            return False
        partitions = [each.partition for each in self.brokers.values()]
        ends = {(each.log.log_end_offset, each.high_watermark) if each else None for each in partitions}
        return len(ends) == 1 and None not in ends and len(set(next(iter(ends)) or ())) == 1

    def _check_the_end(self) -> None:
        invariants = self.invariants
        for value, offset in invariants.acknowledged.items():
            ensure(invariants.committed[offset].value == value, "Acknowledged", value, "is lost")
        for broker in self.brokers.values():
            assert broker.partition is not None
            entries = broker.partition.log.entries_from(0)  # type: ignore[attr-defined]
            ensure(entries == invariants.committed, "CommittedForEver", broker.name, "has something else at the end")

    def _where_they_are(self) -> str:
        def shown(broker: SimulatedBroker) -> str:
            partition = broker.partition
            if partition is None:
                return f"{broker.id}: down"
            return (
                f"{broker.id}: {partition.log.log_end_offset} hw {partition.high_watermark}"
                f" leader {partition.leader}/{partition.leader_epoch}"
            )

        return "; ".join(map(shown, self.brokers.values()))


def _elr(state: PartitionState) -> str:
    return f"elr {state.eligible_leader_replicas}" if state.eligible_leader_replicas else ""


def simulate(seed: int, *, is_told: bool = False) -> World:
    """Raises Violated."""
    world = World(seed, is_told=is_told)
    world.run()
    return world
