"""The options of a mirror, and the summary of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import BadOptions
from ..plan import NOW, check_options
from ..session import SessionOptions
from ..source import Source

DEFAULT_BATCH_RECORDS = 5_000_000
DEFAULT_POLL_INTERVAL_S = 10.0
DEFAULT_GROUPS_INTERVAL_S = 60.0
ALL_GROUPS = ".*"
BROKER_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class MirrorOptions:
    """A copy of topics in another cluster.

    topics, topics_matching: names, and a regular expression that takes whole names; one of them at least. prefix: of
    the names in the target. until: `now`, or milliseconds of Unix time, up to which records are taken; with `follow`
    the run goes on until it is ended. isolation_level: `read_committed` leaves out what transactions aborted.
    max_batch_records: so many offsets go into one job of Spark. accept_loss: records that a topic has deleted before
    they were read do not end the run. append: write behind records that no mirror has written. groups_matching: a
    regular expression for the groups whose offsets are translated; None for none. groups_interval_s: how often a run
    that follows does so. replication_factor: of topics that are created. producer_properties: of librdkafka.
    """

    source: Source
    target: Source
    topics: Sequence[str] = ()
    topics_matching: str | None = None
    prefix: str = ""
    until: str | int = NOW
    follow: bool = False
    isolation_level: str = "read_committed"
    max_batch_records: int = DEFAULT_BATCH_RECORDS
    poll_interval_s: float = DEFAULT_POLL_INTERVAL_S
    accept_loss: bool = False
    append: bool = False
    groups_matching: str | None = ALL_GROUPS
    groups_interval_s: float = DEFAULT_GROUPS_INTERVAL_S
    replication_factor: int = BROKER_DEFAULT
    producer_properties: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    session: SessionOptions = field(default_factory=SessionOptions)

    def check(self) -> None:
        """Raises BadOptions."""
        check_options(self)
        if self.replication_factor != BROKER_DEFAULT and self.replication_factor < 1:
            raise BadOptions("replication_factor is 1 at least")
        try:
            re.compile(self.groups_matching or "")
        except re.error as error:
            raise BadOptions(f"The pattern '{self.groups_matching}' is no regular expression: {error}") from None


@dataclass(frozen=True, slots=True)
class MirroredPartition:
    """A partition of the source. next_offset: where the next run goes on. target_offset: behind its last copy."""

    next_offset: int
    target_offset: int


@dataclass(frozen=True, slots=True)
class MirrorSummary:
    """A summary. records, size_bytes, batches: written by this run; bytes are those of keys and values.

    left: offsets that are still to be read. topics_created: their names in the target. group_offsets: offsets that
    were committed for groups. partitions: by topic of the source.
    """

    batches: int
    records: int
    size_bytes: int
    left: int
    topics_created: Sequence[str]
    group_offsets: int
    partitions: Mapping[str, Mapping[int, MirroredPartition]]
