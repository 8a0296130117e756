"""Where the replicas of new partitions go: Kafka's `StripedReplicaPlacer`.

Leaders are spread over the unfenced brokers, followers over racks. A fenced broker is taken only where the others do
not suffice, and never as the first replica.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from pykbroker.protocol.errors import ErrorCode

from .refused import Refused
from .registrations import BrokerRegistration

INVALID_REPLICATION_FACTOR = ErrorCode.INVALID_REPLICATION_FACTOR


def place_partitions(
    brokers: Sequence[BrokerRegistration], count: int, replication_factor: int, rng: random.Random
) -> list[list[int]]:
    """The replicas of `count` partitions, the preferred leader first. Raises Refused."""
    if all(broker.fenced for broker in brokers):
        reason = "All brokers are currently fenced, or have all their log directories cordoned."
        raise Refused(INVALID_REPLICATION_FACTOR, reason)
    if replication_factor > len(brokers):
        raise Refused(
            INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because only {len(brokers)} "
            "broker(s) are registered or some brokers have all their log directories cordoned.",
        )
    live = _alternate_racks([broker for broker in brokers if not broker.fenced], rng)
    fenced = _alternate_racks([broker for broker in brokers if broker.fenced], rng)
    return [_replicas(live, fenced, partition, replication_factor) for partition in range(count)]


def _replicas(live: Sequence[int], fenced: Sequence[int], partition: int, replication_factor: int) -> list[int]:
    """Each round over the brokers shifts the followers by one, so that they are not always the same pairs."""
    leader = partition % len(live)
    shift = partition // len(live) % max(len(live) - 1, 1)
    followers = [
        live[(leader + 1 + (step + shift) % max(len(live) - 1, 1)) % len(live)] for step in range(len(live) - 1)
    ]
    rotated = [fenced[(partition + step) % len(fenced)] for step in range(len(fenced))]
    return [live[leader], *followers, *rotated][:replication_factor]


def _alternate_racks(brokers: Sequence[BrokerRegistration], rng: random.Random) -> list[int]:
    """Broker ids so ordered that neighbours are in different racks as far as there are any; a random start."""
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers, key=lambda each: each.id):
        racks.setdefault(broker.rack or "", []).append(broker.id)
    ordered: list[int] = []
    queues = [racks[rack] for rack in sorted(racks)]
    while any(queues):
        ordered.extend(queue.pop(0) for queue in queues if queue)
    start = rng.randrange(len(ordered)) if ordered else 0
    return ordered[start:] + ordered[:start]
