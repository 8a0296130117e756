"""What kind of a run it is: what may go wrong in it, and what the cluster is made of so that nothing may be lost.

`acks=all` promises that all in-sync replicas have a record in memory, no more; so a run with power cuts flushes each
message, or has eligible leader replicas (KIP-966) and one unclean end of a broker at a time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    KILLS = "kills"
    POWER_CUTS = "power cuts, of any number of machines; each message is flushed"
    ONE_AT_A_TIME = "power cuts, of one machine at a time"


@dataclass(frozen=True, slots=True)
class Plan:
    """mean_s: the time between two faults. is_dynamic: the voters stand in the log, and are changed (KIP-853).

    disks_fail: they are full for a while, or report an error, after which the process ends. reassigns: partitions, and
    elects preferred leaders.
    """

    kind: Kind
    has_elr: bool
    is_dynamic: bool
    disks_fail: bool
    reassigns: bool
    snapshot_bytes: int
    mean_s: float
    lasts_s: float

    @classmethod
    def of(cls, seed: int) -> Plan:
        rng = random.Random(f"cluster {seed}")
        kind = rng.choice((Kind.KILLS, Kind.KILLS, Kind.POWER_CUTS, Kind.ONE_AT_A_TIME))
        return cls(
            kind=kind,
            has_elr=kind is Kind.ONE_AT_A_TIME or rng.random() < 0.5,
            is_dynamic=rng.random() < 0.3,
            disks_fail=kind is not Kind.ONE_AT_A_TIME and rng.random() < 0.3,
            reassigns=rng.random() < 0.3,
            snapshot_bytes=rng.choice((1_000, 20_971_520)),
            mean_s=rng.choice((0.3, 0.8)),
            lasts_s=rng.uniform(1, 2.2),
        )

    @property
    def properties(self) -> Mapping[str, str]:
        properties = {
            "metadata.log.max.record.bytes.between.snapshots": str(self.snapshot_bytes),
            "leader.imbalance.check.interval.seconds": "1" if self.reassigns else "300",
        }
        if self.kind is Kind.POWER_CUTS:
            properties["log.flush.interval.messages"] = "1"
        return properties

    def __str__(self) -> str:
        parts = [self.kind.value, f"a fault each {self.mean_s} s for {self.lasts_s:.1f} s"]
        names = ("has_elr", "is_dynamic", "disks_fail", "reassigns")
        return "; ".join([*parts, *(name.replace("_", " ") for name in names if getattr(self, name))])
