"""Good histories by chance: clients of a broker that is a few lists, interleaved as a seed decides.

What is here can happen with Kafka: answers and requests get lost, requests arrive when nobody waits any more, clients
die with open transactions, their successors fence them, groups rebalance, logs are compacted. The judge must find
nothing bad in any of it; `mutations` makes it bad.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from random import Random
from typing import Any

from .model_broker import (
    BATCH_BYTES,
    COMPACTED,
    COPIERS,
    COPY,
    DELIVERY_LIMIT,
    KEPT_BYTES,
    MEMBERS,
    PLAIN,
    SHARERS,
    SOURCE,
    TRIMMED,
    Broker,
    Refused,
)
from .operations import (
    FAIL,
    INFO,
    NEVER_NS,
    OK,
    Acknowledgement,
    Commit,
    Delivery,
    Mark,
    Operation,
    Producer,
    Send,
    Value,
)

Steps = Generator[None, None, None]


class Model:
    """One run. `steps`: how many operations its clients try, about."""

    def __init__(self, seed: int, steps: int = 60) -> None:
        self.rng = Random(seed)
        self.broker = Broker()
        self.operations: list[Operation] = []
        self.now_ns = 0
        self._left = steps
        self._processes = 0
        self._values = 0
        self._is_quiet = False

    # What clients do

    def begin(self, proc: int, kind: str) -> Operation:
        self._left -= 1
        self.now_ns += self.rng.randint(1, 2_000_000)
        operation = Operation(len(self.operations), proc, kind, INFO, self.now_ns)
        self.operations.append(operation)
        return operation

    def end(self, operation: Operation, outcome: str) -> None:
        self.now_ns += self.rng.randint(1, 2_000_000)
        operation.outcome = outcome
        operation.completed_ns = NEVER_NS if outcome == INFO else self.now_ns
        if outcome == FAIL:
            operation.marks = []

    def tell(self, proc: int, kind: str, **attributes: Any) -> Operation:
        operation = self.begin(proc, kind)
        for name, value in attributes.items():
            setattr(operation, name, value)
        self.end(operation, OK)
        return operation

    def chance(self, probability: float) -> bool:
        return not self._is_quiet and self.rng.random() < probability

    def new_process(self) -> int:
        self._processes += 1
        return self._processes

    def new_value(self) -> Value:
        self._values += 1
        return f"v{self._values}"

    @property
    def goes_on(self) -> bool:
        return self._left > 0

    def run(self) -> list[Operation]:
        self.tell(0, "copy", details={"pairs": [[SOURCE, COPY]]})
        self.tell(0, "compacted", keys=(COMPACTED,), details={"delete_retention_ms": 3_600_000})
        self.tell(0, "shared", keys=PLAIN, details={"group": SHARERS, "limit": DELIVERY_LIMIT})
        self.tell(0, "trimmed", keys=(TRIMMED,), details={"keeps_bytes": KEPT_BYTES})
        clients: list[Steps] = [
            self._producer(list(PLAIN)),
            self._producer([SOURCE, PLAIN[0]]),
            self._compacted_producer(),
            self._trimmed_producer(),
            self._transactional("t1"),
            self._transactional("t1"),
            self._transactional("t2"),
            self._copier(),
            self._copier(),
            self._reader("read_committed"),
            self._reader("read_uncommitted"),
            self._member("m1"),
            self._member("m2"),
            self._sharer(),
            self._sharer(),
            self._observer(),
        ]
        while clients:
            client = self.rng.choice(clients)
            if next(client, self) is self:
                clients.remove(client)
        self._rest()
        return self.operations

    def _producer(self, keys: list[str]) -> Steps:
        proc = self.new_process()
        while self.goes_on:
            operation = self.begin(proc, "send")
            key, values = self.rng.choice(keys), [self.new_value() for _ in range(self.rng.randint(1, 3))]
            operation.sends = [Send(key, None, value) for value in values]
            yield
            if self.chance(0.1):
                self.end(operation, self.rng.choice((INFO, FAIL)))
                continue
            if self.chance(0.05):
                # Nobody waits any more when the request arrives.
                self.end(operation, INFO)
                proc = self.new_process()
                yield
            offsets = [self.broker.append(key, value) for value in values]
            yield
            if operation.proc != proc:
                continue
            if self.chance(0.1):
                self.end(operation, INFO)
            else:
                operation.sends = [Send(key, *pair) for pair in zip(offsets, values, strict=True)]
                self.end(operation, OK)
            yield

    def _compacted_producer(self) -> Steps:
        proc = self.new_process()
        while self.goes_on:
            operation = self.begin(proc, "send")
            self._values += 1
            payload = None if self.chance(0.3) else f"p{self._values}"
            value = (f"k{self.rng.randint(1, 3)}", payload, self._values)
            yield
            operation.sends = [Send(COMPACTED, self.broker.append(COMPACTED, value), value)]
            self.end(operation, OK)
            if self.chance(0.3):
                self.broker.compact()
            yield

    def _trimmed_producer(self) -> Steps:
        """With a producer id; two requests are under way at once, and the later may be answered first."""
        sequence = 0
        while self.goes_on:
            batches = []
            for _ in range(2):
                operation = self.begin(self.new_process(), "send")
                value = self.new_value()
                operation.sends = [Send(TRIMMED, None, value)]
                operation.details = {"bytes": BATCH_BYTES, "sequence": [1, 0, sequence]}
                sequence += 1
                batches.append((operation, self.broker.append(TRIMMED, value), value))
                yield
            for operation, offset, value in self.rng.sample(batches, 2):
                if self.chance(0.1):
                    self.end(operation, INFO)
                else:
                    operation.sends = [Send(TRIMMED, offset, value)]
                    self.end(operation, OK)
                yield
            if self.chance(0.2):
                below = self.rng.randint(0, len(self.broker.logs[TRIMMED]))
                self.tell(self.new_process(), "trim", details={"below": {TRIMMED: below}})
                self.broker.trim(below)
            elif self.chance(0.3):
                self.broker.trim()

    def _init(self, proc: int, transactional_id: str) -> Generator[None, None, Producer]:
        operation = self.begin(proc, "init")
        yield
        operation.producer = self.broker.init(transactional_id, self.rng)
        producer = operation.producer
        yield
        self.end(operation, OK)
        return producer

    def _transactional(self, transactional_id: str) -> Steps:
        while self.goes_on:
            proc = self.new_process()
            yield
            producer = yield from self._init(proc, transactional_id)
            while self.goes_on:
                operation = self.begin(proc, "txn")
                operation.producer = producer
                if self.chance(0.1):
                    return  # dies, its transaction is open
                try:
                    for _ in range(self.rng.randint(1, 4)):
                        yield
                        key, value = self.rng.choice(PLAIN), self.new_value()
                        operation.sends.append(Send(key, None, value))
                        offset = self.broker.append_in_transaction(producer, key, value)
                        operation.sends[-1] = Send(key, offset, value)
                    yield from self._decide(operation, producer)
                except Refused:
                    self.end(operation, FAIL)
                if operation.outcome != OK:
                    break

    def _decide(self, operation: Operation, producer: Producer) -> Steps:
        """Raises Refused."""
        is_commit = not self.chance(0.25)
        if is_commit:
            operation.decided_ns = self.now_ns
        yield
        if self.chance(0.1):
            self.end(operation, INFO)  # the request is lost, or comes late
            if self.chance(0.5):
                yield
                try:
                    self.broker.end(producer, is_commit=is_commit)
                except Refused:
                    pass
            return
        self.broker.end(producer, is_commit=is_commit)
        yield
        if self.chance(0.1):
            self.end(operation, INFO)
        else:
            self.end(operation, OK if is_commit else FAIL)

    def _copier(self) -> Steps:
        while self.goes_on:
            yield from self._copy(self.new_process(), lambda: self.goes_on)
            yield

    def _copy(self, proc: int, goes_on: Any) -> Steps:
        """From the group's offset to the end of the source, or until it is fenced."""
        producer = yield from self._init(proc, "copier")
        self.tell(proc, "subscribe")
        position = yield from self._committed(proc, COPIERS, SOURCE)
        while goes_on():
            yield
            reads, position = self.broker.read(SOURCE, max(position, 0), "read_committed", 3)
            if not reads:
                return
            operation = self.begin(proc, "txn")
            operation.producer, operation.reads = producer, reads
            operation.commits = [Commit(COPIERS, SOURCE, position)]
            try:
                for read in reads:
                    yield
                    self._values += 1
                    value = (read.value, self._values)
                    operation.sends.append(Send(COPY, self.broker.append_in_transaction(producer, COPY, value), value))
                self.broker.transaction(producer).offsets[COPIERS, SOURCE] = position
                yield from self._decide(operation, producer)
            except Refused:
                self.end(operation, FAIL)
            if operation.outcome != OK:
                return

    def _committed(self, proc: int, group: str, key: str) -> Generator[None, None, int]:
        """As with `require_stable`: no answer while a transaction is about to change it."""
        operation = self.begin(proc, "committed")
        yield
        while any((group, key) in each.offsets for each in self.broker.open.values()):
            if not self.goes_on:
                self.broker.expire_all()
            yield
        offset = self.broker.offsets.get((group, key), -1)
        operation.commits = [Commit(group, key, offset)]
        yield
        self.end(operation, OK)
        return offset

    def _reader(self, isolation: str) -> Steps:
        while self.goes_on:
            proc = self.new_process()
            keys = self.rng.sample([*PLAIN, SOURCE, COPY, TRIMMED], 3)
            self.tell(proc, "assign")
            positions = dict.fromkeys(keys, 0)
            while self.goes_on and not self.chance(0.05):
                operation = self.begin(proc, "poll")
                operation.isolation = isolation
                yield
                for key in keys:
                    reads, positions[key] = self.broker.read(key, positions[key], isolation, self.rng.randint(1, 6))
                    operation.reads += reads
                    operation.marks += self._marks(key)
                yield
                self.end(operation, OK)
                yield

    def _marks(self, key: str) -> Iterator[Mark]:
        yield Mark("start", key, self.broker.starts[key])
        yield Mark("lso", key, self.broker.last_stable_offset(key))
        yield Mark("hw", key, len(self.broker.logs[key]))

    def _member(self, name: str) -> Steps:
        """Joins and leaves, commits what it owns in its generation."""
        while self.goes_on:
            proc = self.new_process()
            self._rebalance(name, has_joined=True)
            generation = -1
            while self.goes_on and not self.chance(0.1):
                yield
                if generation != self.broker.generation:
                    generation = self.broker.generation
                    self._own(proc, name)
                owned = self.broker.owners.get(name, [])
                if owned:
                    yield from self._commit(proc, self.rng.choice(owned), generation)
            self._rebalance(name, has_joined=False)

    def _own(self, proc: int, name: str) -> None:
        keys = tuple(self.broker.owners.get(name, ()))
        details = {"group": MEMBERS, "member": name, "epoch": self.broker.generation}
        self.tell(proc, "own", keys=keys, details=details)

    def _rebalance(self, name: str, *, has_joined: bool) -> None:
        members = [member for member in self.broker.owners if member != name] + [name] * has_joined
        self.broker.generation += 1
        self.broker.owners = {member: list(PLAIN[at :: len(members)]) for at, member in enumerate(members)}

    def _commit(self, proc: int, key: str, generation: int) -> Steps:
        operation = self.begin(proc, "commit")
        offset = self.broker.offsets.get((MEMBERS, key), 0) + self.rng.randint(0, 2)
        operation.commits = [Commit(MEMBERS, key, offset)]
        yield
        if generation != self.broker.generation:
            self.end(operation, FAIL)
            return
        if self.chance(0.9):
            self.broker.offsets[MEMBERS, key] = offset
            yield
            self.end(operation, OK if self.chance(0.9) else INFO)
        else:
            self.end(operation, INFO)

    def _sharer(self) -> Steps:
        """One life after another; what somebody holds who dies is free for others."""
        while self.goes_on:
            proc = self.new_process()
            while self.goes_on and not self.chance(0.1):
                yield from self._share(proc, self.rng.choice(PLAIN))
                yield
            self.broker.free(proc)

    def _share(self, proc: int, key: str) -> Steps:
        operation = self.begin(proc, "deliver")
        yield
        given = self.broker.acquire(key, proc, self.rng.randint(1, 4))
        operation.reads = [read for read, _ in given]
        operation.deliveries = [Delivery(SHARERS, key, read.offset, count) for read, count in given]
        yield
        self.end(operation, OK)
        if not given:
            return
        if self.chance(0.1):
            self.broker.free(proc)  # the locks' time is over
        yield
        operation = self.begin(proc, "acknowledge")
        for read, count in given:
            kind = "accept" if not self.chance(0.2) else self.rng.choice(("release", "reject"))
            outcome = OK if self.broker.acknowledge(key, read.offset, proc, kind) else FAIL
            if self.chance(0.1):
                outcome = INFO
            operation.acknowledgements.append(Acknowledgement(SHARERS, key, read.offset, count, kind, outcome))
        yield
        self.end(operation, OK)

    def _share_the_rest(self, key: str) -> Steps:
        while self.broker.has_free(key):
            yield from self._share(self.new_process(), key)

    def _observer(self) -> Steps:
        proc = self.new_process()
        while self.goes_on:
            if self.chance(0.5):
                operation = self.begin(proc, "offsets")
                yield
                for key in PLAIN:
                    operation.marks += self._marks(key)
                yield
                self.end(operation, OK)
            else:
                yield from self._committed(proc, MEMBERS, self.rng.choice(PLAIN))
            yield

    # The end

    def _rest(self) -> None:
        """All is quiet: transactions are over, copies complete, everything is read once more."""
        self.broker.expire_all()
        self._is_quiet = True
        self.tell(0, "heal")
        for key in (*PLAIN, SOURCE, COMPACTED, TRIMMED):
            self._values += 1
            value = ("k1", "last", self._values) if key == COMPACTED else f"v{self._values}"
            sends = [Send(key, self.broker.append(key, value), value)]
            self.tell(0, "send", sends=sends, details={"bytes": BATCH_BYTES})
        for _ in self._copy(self.new_process(), lambda: True):
            pass
        for proc in {share.holder for share in self.broker.shares.values() if share.holder is not None}:
            self.broker.free(proc)
        for key in PLAIN:
            for _ in self._share_the_rest(key):
                pass
            offset = self.broker.offsets[MEMBERS, key] = len(self.broker.logs[key])
            self.tell(0, "commit", commits=[Commit(MEMBERS, key, offset)])
            self.tell(0, "committed", commits=[Commit(MEMBERS, key, offset)])
        for isolation in ("read_committed", "read_uncommitted"):
            proc = self.new_process()
            self.tell(proc, "assign")
            for key in self.broker.logs:
                reads, _ = self.broker.read(key, 0, isolation, 1 << 30)
                final = {"keys": (key,), "reads": reads, "isolation": isolation, "is_final": True}
                self.tell(proc, "poll", marks=list(self._marks(key)), **final)


def good_history(seed: int, steps: int = 60) -> list[Operation]:
    return Model(seed, steps).run()
