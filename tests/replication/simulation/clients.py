"""Producers and a consumer, as simple as can be, that talk to whichever broker they take for the leader."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.records.batch import Record, encode_batch
from pykbroker.replication.reads import NO_EPOCH

from .broker import TOPIC, WALL_CLOCK_MS, SimulatedBroker
from .events import Process
from .logs import bytes_of, entries_of, read_verified
from .wires import Reply

if TYPE_CHECKING:
    from .world import World

_TIMEOUT_MS = 600
_LATE_TIMEOUT_MS = 5_000


class Producer(Process):
    """Idempotent, one batch at a time; it asks again until it is told where its batch is."""

    def __init__(self, producer_id: int, world: World, rng: random.Random) -> None:
        super().__init__(f"producer {producer_id}", world.events)
        self._producer_id = producer_id
        self._world = world
        self._rng = rng
        self._sequence = 0
        self._values: list[int] = []
        self.acknowledged = 0
        self.begin()
        self.later(rng.uniform(0, 50), self._next_batch)

    @property
    def is_idle(self) -> bool:
        return not self._values

    def _next_batch(self) -> None:
        if not self._world.is_quiet and not self._world.is_calm:
            self.send_one()

    def send_one(self) -> None:
        """Unless one is under way."""
        if self.is_idle:
            self._values = self._world.new_values(self._rng.randint(1, 3))
            self._send()

    def _send(self) -> None:
        if not self._values:
            return
        batch = encode_batch(
            [Record(key=None, value=b"%d" % each, timestamp=WALL_CLOCK_MS) for each in self._values],
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        broker = self._world.guess_leader(self._rng)

        def answered(answer: ErrorCode | int) -> None:
            if isinstance(answer, ErrorCode):
                self._world.note(self.name, self._values, "at", broker.name, answer.name)
                self.later(self._rng.uniform(5, 50), self._send)
                return
            self._world.note(self.name, self._values, "at", broker.name, answer)
            self._world.invariants.note_acknowledged(answer, self._values)
            self.acknowledged += 1
            self._sequence += len(self._values)
            self._values = []
            self.later(self._rng.uniform(0, 60), self._next_batch)

        self._world.wires.ask(
            self,
            broker,
            lambda reply: broker.produce(batch, reply),
            answered=answered,
            failed=lambda: self.later(self._rng.uniform(5, 50), self._send),
            timeout_ms=_LATE_TIMEOUT_MS if self._world.plan.late_looks else _TIMEOUT_MS,
        )


class Consumer(Process):
    """Reads from the beginning on, of leaders and of followers."""

    def __init__(self, number: int, world: World, rng: random.Random) -> None:
        super().__init__(f"consumer {number}", world.events)
        self._world = world
        self._rng = rng
        self._offset = 0
        self.begin()
        self.later(rng.uniform(0, 100), self._read)

    def _read(self) -> None:
        broker = self._world.guess_leader(self._rng)
        topic = broker.image.topic(TOPIC) if broker.is_up else None
        is_strict = self._rng.random() < 0.5
        epoch = topic.partitions[0].leader_epoch if topic is not None and is_strict else NO_EPOCH

        def serve(reply: Reply) -> None:
            reply(_read_from(broker, self._offset, epoch, leader_only=is_strict))

        def answered(data: bytes) -> None:
            entries = [each for each in entries_of(data) if each[0] >= self._offset]
            self._world.invariants.check_consumed(entries)
            if entries:
                self._offset = entries[-1][0] + 1
            self.later(self._rng.uniform(10, 80), self._read)

        self._world.wires.ask(
            self,
            broker,
            serve,
            answered=answered,
            failed=lambda: self.later(20, self._read),
            timeout_ms=_TIMEOUT_MS,
        )


def _read_from(broker: SimulatedBroker, offset: int, leader_epoch: int, *, leader_only: bool) -> bytes:
    if broker.partition is None or not broker.serves:
        return b""
    data = read_verified(broker.partition, offset, leader_epoch=leader_epoch, leader_only=leader_only)
    return bytes_of(data.records) if data.records_size else b""
