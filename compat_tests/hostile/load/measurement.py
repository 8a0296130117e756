"""One attack on one broker: what an honest producer, the memory and the event loop felt of it."""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from compat_tests.brokers import BrokerProcess, Pykbroker
from compat_tests.certificates import Authority
from compat_tests.hostile.scene import Scene
from compat_tests.key_stores import write_pem
from compat_tests.latency_probe import INTERVAL_S, LEAST_RECORDS, LatencyProbe
from compat_tests.loop_holds import Hold, loop_holds
from compat_tests.ports import take_ports
from compat_tests.topics import wait_for_leaders
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.topics import CreatableTopic, CreatableTopicConfig
from pykbroker.server.runtime.loop_monitor import BOUND_VARIABLE

from .attacker import READY
from .attacks import TOPIC, Address, Attack
from .every_attack import ATTACKS

HONEST_TOPIC = "honest"
MIB = 1 << 20
HOLD_BOUND_MS = 20
SAMPLE_S = 0.02
SETTLED_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Felt:
    """p99 and slowest in ms, memory in MiB above the idle broker's."""

    quiet_p99_ms: float
    p99_ms: float
    slowest_ms: float
    errors: tuple[str, ...]
    peak_mib: float
    left_mib: float
    descriptors_left: int
    is_alive: bool
    serves_again: bool
    longest_hold: Hold | None
    """None where no step took longer than HOLD_BOUND_MS."""


def measure(name: str, directory: Path, seconds: float, settled_within_s: float = SETTLED_WITHIN_S) -> Felt:
    """On a new pykbroker in this directory, with so many seconds of quiet and as many of the attack.

    settled_within_s: how long the broker has at most to let go of what the attackers left.
    """
    attack = ATTACKS[name]
    broker = WatchedBroker(directory, attack)
    broker.start()
    try:
        prepare(broker, attack)
        return _measure(name, broker, seconds, settled_within_s)
    finally:
        broker.kill()


def p99_elsewhere_ms(name: str, directory: Path, seconds: float) -> float:
    """What an honest client feels of the same attack on another broker of this machine: of two cores that have more
    to do, and of nothing that its own broker could do better."""
    attack = ATTACKS[name]
    honest = WatchedBroker(directory / "honest", Attack(attack.prepare))
    attacked = WatchedBroker(directory / "attacked", attack)
    try:
        for broker in (honest, attacked):
            broker.start()
            prepare(broker, broker.attack)
        with LatencyProbe(honest, HONEST_TOPIC) as probe:
            _await_records(probe, time.monotonic())
            with _attacking(name, attacked):
                began = time.monotonic()
                time.sleep(seconds)
            return p99(as_scheduled(probe.latencies_ms(began, time.monotonic())))
    finally:
        honest.kill()
        attacked.kill()


class WatchedBroker(Pykbroker):
    """Its log names every step of the loop above the bound. It has a TLS listener where the attack is over TLS."""

    def __init__(self, directory: Path, attack: Attack) -> None:
        super().__init__(directory)
        self.attack = attack
        self.attacked: Address = self.address
        if attack.over_tls:
            (port,) = take_ports(1)
            self.attacked = ("127.0.0.1", port)
            self.properties["listeners"] += f",TLS://127.0.0.1:{port}"
            self.properties["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL"
            self.properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(directory / "store.pem")}

    def prepare(self) -> None:
        if self.attack.over_tls:
            write_pem(self.directory / "store.pem", Authority.root().server())

    def command(self) -> list[str]:
        return ["env", f"{BOUND_VARIABLE}={HOLD_BOUND_MS}", *super().command()]


def prepare(broker: BrokerProcess, attack: Attack) -> None:
    """The topics and what is in them, and a group coordinator at work."""
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in attack.configs.items()]
    topics = [
        CreatableTopic(name=HONEST_TOPIC, num_partitions=1, replication_factor=1),
        CreatableTopic(name=TOPIC, num_partitions=attack.partitions, replication_factor=1, configs=configs),
        *(
            CreatableTopic(name=f"other-{number}", num_partitions=1, replication_factor=1)
            for number in range(attack.other_topics)
        ),
    ]
    scene = Scene(broker)
    for topic in topics[:2]:
        assert scene.create_all([topic]) == ["NONE"]
        wait_for_leaders(broker, topic.name, topic.num_partitions)
    assert not topics[2:] or set(scene.create_all(topics[2:])) == {"NONE"}
    scene.group()
    for batch in attack.records():
        with Wire(broker.address, 120) as wire:
            for first in range(0, attack.partitions, 500):
                indexes = range(first, min(first + 500, attack.partitions))
                data = [PartitionProduceData(index=index, records=batch) for index in indexes]
                topics = [TopicProduceData(name=TOPIC, partition_data=data)]
                wire.call(ProduceRequest(acks=1, timeout_ms=60_000, topic_data=topics), 9, deadline_s=120)


def _measure(name: str, broker: WatchedBroker, seconds: float, settled_within_s: float) -> Felt:
    process = psutil.Process(broker.pid)
    with LatencyProbe(broker, HONEST_TOPIC) as probe:
        _await_records(probe, time.monotonic())
        began = time.monotonic()
        time.sleep(seconds)
        idle_mib, idle_descriptors = _resident_mib(process), process.num_fds()
        logged = len(broker.log_text())
        with _attacking(name, broker), _peak_memory(process) as peak:
            attacked = time.monotonic()
            time.sleep(seconds)
        over = time.monotonic()
        is_alive = process.is_running() and broker.process is not None and broker.process.poll() is None
        serves_again = is_alive and _serves_again(probe)
        if serves_again:
            _settle(process, idle_mib, idle_descriptors, settled_within_s)
        beside = as_scheduled(probe.latencies_ms(attacked, over))
        return Felt(
            quiet_p99_ms=p99(as_scheduled(probe.latencies_ms(began, attacked))),
            p99_ms=p99(beside),
            slowest_ms=beside[-1],
            errors=tuple(probe.errors(began, time.monotonic())),
            peak_mib=max(peak) - idle_mib,
            left_mib=_resident_mib(process) - idle_mib if is_alive else 0.0,
            descriptors_left=process.num_fds() - idle_descriptors if is_alive else 0,
            is_alive=is_alive,
            serves_again=serves_again,
            longest_hold=max(loop_holds(broker.log_text()[logged:]), default=None),
        )


def as_scheduled(latencies_ms: list[float]) -> list[float]:
    """The probe sends nothing while it waits. What it would have sent at its pace would have waited for the rest."""
    interval_ms = INTERVAL_S * 1000
    missing = (
        late - behind * interval_ms for late in latencies_ms for behind in range(1, math.ceil(late / interval_ms))
    )
    return sorted([*latencies_ms, *missing]) or [math.inf]


def p99(latencies_ms: list[float]) -> float:
    return latencies_ms[len(latencies_ms) * 99 // 100]


def _await_records(probe: LatencyProbe, since_s: float) -> None:
    until(lambda: len(probe.latencies_ms(since_s, time.monotonic())) >= LEAST_RECORDS, "the honest client is served")


def _serves_again(probe: LatencyProbe) -> bool:
    try:
        _await_records(probe, time.monotonic())
    except AssertionError:
        return False
    return True


def _settle(process: psutil.Process, idle_mib: float, idle_descriptors: int, within_s: float) -> None:
    """Gives a broker time to let go of what the attackers left, and returns early when it has."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if _resident_mib(process) < idle_mib + 32 and process.num_fds() <= idle_descriptors + 2:
            return
        time.sleep(0.2)


@contextmanager
def _peak_memory(process: psutil.Process) -> Iterator[list[float]]:
    """The samples: a peak that was there before does not count."""
    samples = [_resident_mib(process)]
    is_over = threading.Event()

    def sample() -> None:
        while not is_over.wait(SAMPLE_S):
            try:
                samples.append(_resident_mib(process))
            except psutil.NoSuchProcess:
                return

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        is_over.set()
        thread.join()


@contextmanager
def _attacking(name: str, broker: WatchedBroker) -> Iterator[None]:
    host, port = broker.attacked
    command = [sys.executable, "-m", "compat_tests.hostile.load.attacker", name, host, str(port)]
    pipe = subprocess.PIPE
    attacker = subprocess.Popen(command, stdin=pipe, stdout=pipe, preexec_fn=_many_descriptors)
    assert attacker.stdin is not None
    assert attacker.stdout is not None
    try:
        assert attacker.stdout.readline() == READY, f"the attacker of {name} has ended"
        yield
    finally:
        assert attacker.poll() is None, f"the attacker of {name} has ended"
        attacker.stdin.close()
        try:
            attacker.wait(10)
        except subprocess.TimeoutExpired:
            attacker.kill()
            attacker.wait()
        attacker.stdout.close()


def _many_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _resident_mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / MIB
