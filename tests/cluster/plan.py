"""What kind of a run it is: what may go wrong in it, and what the cluster is made of so that nothing may be lost.

`acks=all` promises that all in-sync replicas have a record in memory, no more; so a run with power cuts flushes each
message, or has eligible leader replicas (KIP-966) and one unclean end of a broker at a time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pykbroker.sim.node import LOG_DIRECTORY

_SHORT_METADATA_LOG = {
    "metadata.log.max.record.bytes.between.snapshots": "1000",
    "metadata.max.retention.bytes": "1",
    "internal.metadata.log.segment.bytes": "3000",
    "internal.metadata.delete.delay.millis": "100",
}


class Kind(Enum):
    KILLS = "kills"
    POWER_CUTS = "power cuts, of any number of machines; each message is flushed"
    ONE_AT_A_TIME = "power cuts, of one machine at a time"


@dataclass(frozen=True, slots=True)
class Plan:
    """mean_s: the time between two faults. is_dynamic: the voters stand in the log, and are changed (KIP-853).

    disks_fail: they are full for a while, or report an error, after which the process ends. reassigns: partitions, and
    elects preferred leaders. administers_s: the mean time between two such requests.

    pace: how much slower clients are in a run that lasts for long. away_s: how long a node is away at most; in some
    runs so long that it begins with a snapshot of the metadata, and where logs begin by then. forgets_metadata: its
    log begins at the last snapshot. directories: of each node, among which replicas are moved. lag_ms: how long a
    follower may lag.
    """

    kind: Kind
    has_elr: bool
    is_dynamic: bool
    disks_fail: bool
    reassigns: bool
    snapshot_bytes: int
    mean_s: float
    lasts_s: float
    pace: float
    away_s: float
    forgets_metadata: bool
    administers_s: float
    directories: int
    lag_ms: int

    @classmethod
    def of(cls, seed: int) -> Plan:
        rng = random.Random(f"cluster {seed}")
        sizes = random.Random(f"cluster sizes {seed}")
        shorter_s = sizes.choice((0, 0, 0, 0, 0, 0, 5, 20))
        longer_s = shorter_s and sizes.uniform(shorter_s, 2 * shorter_s)
        kind = rng.choice((Kind.KILLS, Kind.KILLS, Kind.POWER_CUTS, Kind.ONE_AT_A_TIME))
        return cls(
            kind=kind,
            has_elr=kind is Kind.ONE_AT_A_TIME or rng.random() < 0.5,
            is_dynamic=rng.random() < 0.3,
            disks_fail=kind is not Kind.ONE_AT_A_TIME and rng.random() < 0.3,
            reassigns=rng.random() < 0.3,
            snapshot_bytes=rng.choice((1_000, 20_971_520)),
            mean_s=rng.choice((0.3, 0.8)) * (1 + longer_s / 5),
            lasts_s=rng.uniform(1, 2.2) + longer_s,
            pace=1 + longer_s / 4,
            away_s=sizes.choice((3.0, 3.0, max(3.0, longer_s * 0.8))),
            forgets_metadata=sizes.random() < 0.3,
            administers_s=sizes.choice((0.4, 0.4, 0.1)) * (1 + longer_s / 10),
            directories=sizes.choice((1, 1, 2)),
            lag_ms=sizes.choice((1_500, 1_500, 6_000)),
        )

    @property
    def properties(self) -> Mapping[str, str]:
        properties = {
            "metadata.log.max.record.bytes.between.snapshots": str(self.snapshot_bytes),
            "replica.lag.time.max.ms": str(self.lag_ms),
            "log.dirs": ",".join(self.log_directories),
            "leader.imbalance.check.interval.seconds": "1" if self.reassigns else "300",
        }
        if self.forgets_metadata:
            properties |= _SHORT_METADATA_LOG
        if self.kind is Kind.POWER_CUTS:
            properties["log.flush.interval.messages"] = "1"
        return properties

    @property
    def log_directories(self) -> list[str]:
        return [LOG_DIRECTORY, *(f"{LOG_DIRECTORY}{number}" for number in range(2, self.directories + 1))]

    def __str__(self) -> str:
        parts = [self.kind.value, f"a fault each {self.mean_s:.1f} s for {self.lasts_s:.1f} s"]
        parts += [f"nodes are away for up to {self.away_s:.0f} s"] * (self.away_s > 3)
        parts += [f"an administrator each {self.administers_s:.1f} s"]
        parts += [f"{self.directories} directories"] * (self.directories > 1)
        parts += [f"followers may lag for {self.lag_ms} ms"] * (self.lag_ms > 1_500)
        names = ("has_elr", "is_dynamic", "disks_fail", "reassigns", "forgets_metadata")
        return "; ".join([*parts, *(name.replace("_", " ") for name in names if getattr(self, name))])
