"""The placement of the replicas of new partitions: the rule of Kafka's `StripedReplicaPlacer`.

The racks stand in a row. Each partition begins one rack further than the partition before it: that rack gives the
leader, the racks behind it one follower each, round and round until there are enough. Within a rack each partition
begins one broker further. So no rack has two replicas of a partition while another has none. A fenced broker is taken
only where its rack has no other broker left, and never as the leader.

After as many partitions as there are unfenced brokers the racks, and the brokers of each, are shuffled, so that the
next partitions do not repeat the same pairs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, cycle, islice

from pykbroker.protocol.errors import ApiError, ErrorCode

from .registrations import BrokerRegistration

INVALID_REPLICATION_FACTOR = ErrorCode.INVALID_REPLICATION_FACTOR


def place_partitions(
    brokers: Sequence[BrokerRegistration], count: int, replication_factor: int, rng: random.Random
) -> Iterator[list[int]]:
    """The replicas of `count` partitions, the preferred leader first, chosen as they are asked for. Raises ApiError."""
    if all(broker.fenced for broker in brokers):
        reason = "All brokers are currently fenced, or have all their log directories cordoned."
        raise ApiError(INVALID_REPLICATION_FACTOR, reason)
    if replication_factor > len(brokers):
        raise ApiError(
            INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because only {len(brokers)} "
            "broker(s) are registered or some brokers have all their log directories cordoned.",
        )
    row = _RackRow(brokers, rng)
    return (row.place(replication_factor) for _ in range(count))


class _RackRow:
    """The racks in the order in which they give replicas. At least one broker is unfenced."""

    def __init__(self, brokers: Sequence[BrokerRegistration], rng: random.Random) -> None:
        by_rack: dict[str | None, list[BrokerRegistration]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self._racks = [_Rack(by_rack[name], rng) for name in names]
        self._unfenced = sum(not broker.fenced for broker in brokers)
        self._rng = rng
        self._first = rng.randrange(len(self._racks))
        self._turn = 0  # of the partitions since the last shuffle

    def place(self, replication_factor: int) -> list[int]:
        if self._turn == self._unfenced > 1:
            self._shuffle()
        racks = self._racks[self._first :] + self._racks[: self._first]
        replicas = list(islice(_replicas(racks, self._turn), replication_factor))
        self._first = (self._first + 1) % len(racks)
        self._turn += 1
        return replicas

    def _shuffle(self) -> None:
        self._rng.shuffle(self._racks)
        for rack in self._racks:
            rack.shuffle(self._rng)
        self._turn = 0


def _replicas(racks: Sequence[_Rack], turn: int) -> Iterator[int]:
    """Choose as many replicas as are asked for.

    The first sweep over the racks passes by the one that has given the leader.
    """
    leaders_rack, leader = next((rack, broker) for rack in racks if (broker := rack.take_unfenced(turn)) is not None)
    yield leader
    for rack in chain((rack for rack in racks if rack is not leaders_rack), cycle(racks)):
        if (follower := rack.take(turn)) is not None:
            yield follower


class _Rack:
    def __init__(self, brokers: Sequence[BrokerRegistration], rng: random.Random) -> None:
        self._fenced = _BrokerRing((broker.id for broker in brokers if broker.fenced), rng)
        self._unfenced = _BrokerRing((broker.id for broker in brokers if not broker.fenced), rng)

    def take_unfenced(self, turn: int) -> int | None:
        return self._unfenced.take(turn)

    def take(self, turn: int) -> int | None:
        broker = self._unfenced.take(turn)
        return self._fenced.take(turn) if broker is None else broker

    def shuffle(self, rng: random.Random) -> None:
        self._fenced.shuffle(rng)
        self._unfenced.shuffle(rng)


class _BrokerRing:
    """Each turn takes every broker once at most, and begins one broker further than the turn that asked before it.

    Turns are counted from 0 again after a shuffle. A ring that nobody has asked since a turn 0 then believes that it is
    in that turn still: it gives what it has left, as Kafka's does. There are enough others, for these sufficed before.
    """

    def __init__(self, broker_ids: Iterable[int], rng: random.Random) -> None:
        self._broker_ids = sorted(broker_ids)
        self._first = rng.randrange(len(self._broker_ids)) if self._broker_ids else 0
        self._turn = 0
        self._taken = 0

    def take(self, turn: int) -> int | None:
        """The next broker; None where this turn has had all of them."""
        if turn != self._turn:
            self._turn, self._taken = turn, 0
            self._first += 1
        if self._taken >= len(self._broker_ids):
            return None
        self._taken += 1
        return self._broker_ids[(self._first + self._taken - 1) % len(self._broker_ids)]

    def shuffle(self, rng: random.Random) -> None:
        rng.shuffle(self._broker_ids)
