"""What partitions in tests know of the cluster: its brokers, and what they have proposed to its controller."""

from __future__ import annotations

from dataclasses import dataclass, field

from pykbroker.replication.isr import IsrChange
from pykbroker.replication.partition import IsrRules, Partition

LAG_TIME_MAX_MS = 30_000


@dataclass
class FixedBrokers:
    """epochs: of the brokers that live; whoever is not in it is fenced. leaving: about to shut down.

    has_registered: the process of the broker that asks.
    """

    epochs: dict[int, int] = field(default_factory=lambda: {1: 101, 2: 102, 3: 103})
    leaving: set[int] = field(default_factory=set)
    has_registered: bool = True

    def live_epoch(self, broker_id: int) -> int | None:
        return self.epochs.get(broker_id)

    def may_join_isr(self, broker_id: int) -> bool:
        return broker_id in self.epochs and broker_id not in self.leaving

    def knows_this_process(self) -> bool:
        return self.has_registered


@dataclass
class Proposals:
    """proposed: in their order, until somebody answers them."""

    brokers: FixedBrokers = field(default_factory=FixedBrokers)
    proposed: list[tuple[Partition, IsrChange]] = field(default_factory=list)

    def rules(self, lag_time_max_ms: int = LAG_TIME_MAX_MS) -> IsrRules:
        return IsrRules(
            self.brokers, lag_time_max_ms, lambda partition, change: self.proposed.append((partition, change))
        )
