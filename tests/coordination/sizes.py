"""How large a run is: each dimension is small in most runs and large in some, whatever the others are.

Besides the topics of every run there may be three: `wide` has many partitions; from `trimmed` retention and
DeleteRecords take what they may; `latest` is compacted.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pykbroker.protocol.records.compression import Compression

WIDE, TRIMMED, LATEST = "wide", "trimmed", "latest"

_LARGEST_RECORD_BYTES = 40
"""With its number within its value; a batch's own bytes are less than three more."""
_SMALL_SEGMENT_BYTES = 500
_INTERNAL_SEGMENT_BYTES = 4_096
_CLEANER = {"log.cleaner.backoff.ms": "200", "log.cleaner.min.cleanable.ratio": "0.01"}
_RETENTION = {"log.retention.check.interval.ms": "300", "log.initial.task.delay.ms": "300"}


class Topic(NamedTuple):
    partitions: int
    configs: Mapping[str, str] = {}


_ALWAYS = {"orders": Topic(2), "source": Topic(1), "copy": Topic(1)}


@dataclass(frozen=True, slots=True)
class Sizes:
    """most_records: of one value; a batch has up to three. in_flight: requests of a pipelining producer on one
    connection, or 0 where there is none. wide: partitions of the topic of that name. blocks_s: how long a produce
    request may wait for its replicas. rolls_bytes, internal_rolls_bytes: the segments' size. keeps: what the retention
    of `trimmed` leaves there. clocks_ms: how far apart two nodes' clocks may be.
    """

    most_records: int = 1
    compression: Compression = Compression.NONE
    in_flight: int = 0
    wide: int = 0
    has_sessions: bool = False
    blocks_s: float = 2.0
    rolls_bytes: int | None = None
    internal_rolls_bytes: int | None = None
    keeps: Mapping[str, int] = field(default_factory=dict)
    is_compacted: bool = False
    deletes_files_ms: int = 60_000

    @classmethod
    def of(cls, seed: int) -> Sizes:
        rng = random.Random(f"sizes {seed}")
        sizes = cls(
            most_records=rng.choice((1, 1, 1, 1, 20, 700)),
            compression=rng.choice((Compression.NONE, Compression.NONE, *Compression)),
            in_flight=rng.choice((0, 0, 0, 2, 5)),
            wide=rng.choice((0, 0, 0, 0, 10, 40)),
            has_sessions=rng.random() < 0.3,
            blocks_s=rng.choice((2.0, 2.0, 12.0)),
            rolls_bytes=rng.choice((None, None, 300, 3_000)),
            internal_rolls_bytes=rng.choice((None, None, _INTERNAL_SEGMENT_BYTES)),
            keeps=rng.choice(({}, {}, {}, {"keeps_bytes": 2_000}, {"keeps_bytes": 40_000}, {"keeps_ms": 9_000})),
            is_compacted=rng.random() < 0.3,
            deletes_files_ms=rng.choice((0, 700, 60_000)),
        )
        return sizes if sizes.in_flight else replace(sizes, wide=0)

    # What follows for the cluster

    @property
    def properties(self) -> dict[str, str]:
        properties = {"log.segment.delete.delay.ms": str(self.deletes_files_ms)}
        if self.is_compacted or self.internal_rolls_bytes is not None:
            properties |= _CLEANER
        if self.keeps:
            properties |= _RETENTION
        return properties

    def topics(self, delete_retention_ms: int) -> dict[str, Topic]:
        rolls = {} if self.rolls_bytes is None else {"internal.segment.bytes": str(self._with_room(self.rolls_bytes))}
        topics = {name: topic._replace(configs=rolls) for name, topic in _ALWAYS.items()}
        if self.wide:
            topics[WIDE] = Topic(self.wide, rolls)
        small = {"internal.segment.bytes": str(self._with_room(_SMALL_SEGMENT_BYTES))}
        if "keeps_bytes" in self.keeps:
            topics[TRIMMED] = Topic(1, {**small, "retention.bytes": str(self.keeps["keeps_bytes"])})
        elif self.keeps:
            topics[TRIMMED] = Topic(1, {**small, "retention.ms": str(self.keeps["keeps_ms"])})
        if self.is_compacted:
            policy = {"cleanup.policy": "compact", "delete.retention.ms": str(delete_retention_ms)}
            topics[LATEST] = Topic(2, {"internal.segment.bytes": str(_SMALL_SEGMENT_BYTES), **policy})
        return topics

    def _with_room(self, segment_bytes: int) -> int:
        """A batch must fit in a segment."""
        return max(segment_bytes, 3 * (self.most_records + 1) * _LARGEST_RECORD_BYTES)

    def __str__(self) -> str:
        return "; ".join(self._parts()) or "all is small"

    def _parts(self) -> list[str]:
        parts = [f"values of up to {self.most_records} records"] * (self.most_records > 1)
        parts += [f"{self.compression.name.lower()}"] * (self.compression is not Compression.NONE)
        parts += [f"{self.in_flight} requests in flight"] * (self.in_flight > 0)
        parts += [f"{self.wide} partitions more"] * (self.wide > 0)
        parts += ["fetch sessions"] * self.has_sessions
        parts += [f"produce requests wait for {self.blocks_s:.0f} s"] * (self.blocks_s > 2)
        parts += [f"segments of {self.rolls_bytes} bytes"] * (self.rolls_bytes is not None)
        parts += [f"internal segments of {self.internal_rolls_bytes} bytes"] * (self.internal_rolls_bytes is not None)
        parts += [f"retention {name.replace('_', ' ')} {kept}" for name, kept in self.keeps.items()]
        parts += ["a compacted topic"] * self.is_compacted
        return parts
