"""A broker that is a few lists: logs, transactions, committed offsets, and who may write."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from .operations import Producer, Read, Value

SOURCE, COPY, COMPACTED, TRIMMED = "in-0", "out-0", "compacted-0", "trimmed-0"
PLAIN = ("a-0", "a-1", "b-0")
BATCH_BYTES, KEPT_BYTES = 100, 300
"""Of each batch in the trimmed partition, and what its retention leaves there."""
COPIERS, MEMBERS, SHARERS = "copiers", "members", "sharers"
DELIVERY_LIMIT = 5


class Refused(Exception):
    """The broker knows a newer producer or generation."""


@dataclass(eq=False)
class Transaction:
    producer: Producer
    state: str = "open"
    first_offsets: dict[str, int] = field(default_factory=dict)
    offsets: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass(eq=False)
class Entry:
    """A record, or a marker where it has no value. removed: compaction did that."""

    value: Value = None
    transaction: Transaction | None = None
    is_marker: bool = False
    is_removed: bool = False


@dataclass(eq=False)
class Share:
    """A record of a share group. holder: the process that it was given to, None where it is free."""

    count: int = 0
    holder: int | None = None
    is_over: bool = False


class Broker:
    def __init__(self) -> None:
        self.logs: dict[str, list[Entry]] = {key: [] for key in (*PLAIN, SOURCE, COPY, COMPACTED, TRIMMED)}
        self.starts = dict.fromkeys(self.logs, 0)
        self.offsets: dict[tuple[str, str], int] = {}
        self.producers: dict[str, Producer] = {}
        self.open: dict[str, Transaction] = {}
        self.generation = 0
        self.owners: dict[str, list[str]] = {}
        self.shares: dict[tuple[str, int], Share] = {}
        self._last_producer_id = 0

    def append(self, key: str, value: Value, transaction: Transaction | None = None) -> int:
        self.logs[key].append(Entry(value, transaction))
        return len(self.logs[key]) - 1

    def init(self, transactional_id: str, rng: Random) -> Producer:
        known = self.producers.get(transactional_id)
        if known is not None and transactional_id in self.open:
            self._end(transactional_id, is_commit=False)
        if known is None or rng.random() < 0.1:
            self._last_producer_id += 1
            producer = Producer(transactional_id, self._last_producer_id, 0)
        else:
            producer = known._replace(epoch=known.epoch + 1)
        self.producers[transactional_id] = producer
        return producer

    def _ensure_newest(self, producer: Producer) -> None:
        if self.producers[producer.transactional_id] != producer:
            raise Refused

    def transaction(self, producer: Producer) -> Transaction:
        self._ensure_newest(producer)
        return self.open.setdefault(producer.transactional_id, Transaction(producer))

    def append_in_transaction(self, producer: Producer, key: str, value: Value) -> int:
        transaction = self.transaction(producer)
        offset = self.append(key, value, transaction)
        transaction.first_offsets.setdefault(key, offset)
        return offset

    def end(self, producer: Producer, *, is_commit: bool) -> None:
        self.transaction(producer)
        self._end(producer.transactional_id, is_commit=is_commit)

    def _end(self, transactional_id: str, *, is_commit: bool) -> None:
        transaction = self.open.pop(transactional_id)
        transaction.state = "committed" if is_commit else "aborted"
        for key in transaction.first_offsets:
            self.logs[key].append(Entry(is_marker=True))
        if is_commit:
            self.offsets.update(transaction.offsets)

    def expire_all(self) -> None:
        for transactional_id in list(self.open):
            self._end(transactional_id, is_commit=False)
            producer = self.producers[transactional_id]
            self.producers[transactional_id] = producer._replace(epoch=producer.epoch + 1)

    def last_stable_offset(self, key: str) -> int:
        firsts = [each.first_offsets[key] for each in self.open.values() if key in each.first_offsets]
        return min(firsts, default=len(self.logs[key]))

    def read(self, key: str, position: int, isolation: str, most: int) -> tuple[list[Read], int]:
        """What is visible, and the next position."""
        is_committed = isolation == "read_committed"
        position = max(position, self.starts[key])
        end = self.last_stable_offset(key) if is_committed else len(self.logs[key])
        found: list[Read] = []
        while position < end and len(found) < most:
            entry = self.logs[key][position]
            is_hidden = is_committed and entry.transaction is not None and entry.transaction.state == "aborted"
            if not (entry.is_marker or entry.is_removed or is_hidden):
                found.append(Read(key, position, entry.value))
            position += 1
        return found, position

    def compact(self) -> None:
        newest: set[Any] = set()
        for entry in reversed(self.logs[COMPACTED]):
            entry.is_removed = entry.is_removed or entry.value[0] in newest
            newest.add(entry.value[0])

    def trim(self, below: int = 0) -> None:
        """Delete what is below that offset, and what retention does not keep; a batch is one record."""
        kept = KEPT_BYTES // BATCH_BYTES
        self.starts[TRIMMED] = max(self.starts[TRIMMED], below, len(self.logs[TRIMMED]) - kept)

    # The share group

    def acquire(self, key: str, holder: int, most: int) -> list[tuple[Read, int]]:
        """Give free records to a process, each with its count."""
        found: list[tuple[Read, int]] = []
        for read in self.read(key, 0, "read_committed", 1 << 30)[0]:
            share = self.shares.setdefault((key, read.offset), Share())
            if len(found) < most and not share.is_over and share.holder is None:
                share.holder = holder
                share.count += 1
                found.append((read, share.count))
        return found

    def has_free(self, key: str) -> bool:
        """Tell whether there is a record that nobody holds, and that is not over."""
        shares = (
            self.shares.get((key, read.offset), Share()) for read in self.read(key, 0, "read_committed", 1 << 30)[0]
        )
        return any(not share.is_over and share.holder is None for share in shares)

    def acknowledge(self, key: str, offset: int, holder: int, kind: str) -> bool:
        """Tell whether the word of this process on a record counts."""
        share = self.shares[key, offset]
        if share.holder != holder or share.is_over:
            return False
        share.is_over = kind != "release" or share.count == DELIVERY_LIMIT
        share.holder = None
        return True

    def free(self, holder: int) -> None:
        """Take back what a process holds."""
        for (key, offset), share in self.shares.items():
            if share.holder == holder:
                self.acknowledge(key, offset, holder, "release")
