"""The result of an audit, as plain values: `asdict` of it is its JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """Records of a partition, by their offsets.

    missing_offsets: between the first and the last record, without a record: markers and aborted records of
    transactions, and what compaction took away. duplicate_offsets: records beyond the first with their offset.
    backwards: records whose timestamp is before the one in front of them. checksum: over all fields.
    content_checksum: over key, value and headers.
    """

    partition: int
    records: int
    size_bytes: int
    first_offset: int
    last_offset: int
    missing_offsets: int
    duplicate_offsets: int
    null_keys: int
    null_values: int
    first_timestamp_ms: int
    last_timestamp_ms: int
    backwards: int
    largest_step_back_ms: int
    checksum: str
    content_checksum: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets without a record, the last one included."""

    partition: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class PeriodReport:
    """Records of a partition from a time on, as long as `TopicReport.period_hours`."""

    start_ms: int
    partition: int
    records: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LargeRecord:
    """A record. size_bytes: of key and value. key: as text, its beginning; None where it is null or is gone already."""

    partition: int
    offset: int
    size_bytes: int
    key: str | None


@dataclass(frozen=True, slots=True)
class KeyReport:
    """A key. key: as text, its beginning; None where its record is gone already. partition: the lowest with the key."""

    key: str | None
    partition: int
    offset: int
    records: int
    size_bytes: int
    partitions: int


@dataclass(frozen=True, slots=True)
class KeysReport:
    """Keys that are not null. in_several_partitions: of these keys nothing keeps the order."""

    distinct: int
    in_several_partitions: int
    heaviest: list[KeyReport]
    scattered: list[KeyReport]


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that holds back the records behind it from consumers of committed records."""

    partition: int
    producer_id: int
    producer_epoch: int
    start_offset: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class TopicReport:
    """A topic of a cluster or of an archive, `origin` says which."""

    name: str
    origin: str
    partitions: list[PartitionReport]
    gaps: list[Gap]
    period_hours: int
    periods: list[PeriodReport]
    largest: list[LargeRecord]
    keys: KeysReport
    open_transactions: list[OpenTransaction]

    @property
    def records(self) -> int:
        return sum(each.records for each in self.partitions)

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.partitions)

    @property
    def skew(self) -> float:
        """The records of the fullest partition, over the mean."""
        return max((each.records for each in self.partitions), default=0) * len(self.partitions) / max(self.records, 1)


@dataclass(frozen=True, slots=True)
class ComparedPartition:
    """Both sides of a partition; None stands for all partitions, where the numbers of them differ."""

    partition: int | None
    records: int
    other_records: int
    checksum: str
    other_checksum: str

    @property
    def equal(self) -> bool:
        return (self.records, self.checksum) == (self.other_records, self.other_checksum)


@dataclass(frozen=True, slots=True)
class Difference:
    """Sixteen offsets, in which the two sides differ."""

    partition: int
    first_offset: int
    last_offset: int
    records: int
    other_records: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A topic beside another one, or beside its archive: then offsets and timestamps are compared too.

    newer_offsets: those of the topic that the archive has not read yet.
    """

    left: str
    right: str
    partitions: list[ComparedPartition]
    differences: list[Difference]
    newer_offsets: int = 0

    @property
    def equal(self) -> bool:
        return all(each.equal for each in self.partitions)


@dataclass(frozen=True, slots=True)
class ReplayedPartition:
    """A partition of an archive, and what a topic has of it. records: of the archive. replayed: those of them that the
    topic has, each counted once. twice: further records with the same identities. The checksums are over all fields but
    the type of the timestamp, each record counted once.
    """

    partition: int
    records: int
    replayed: int
    twice: int
    checksum: str
    replayed_checksum: str

    @property
    def equal(self) -> bool:
        return (self.records, self.checksum) == (self.replayed, self.replayed_checksum)


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """A topic beside the archive whose records were replayed to it. differences: in offsets of the archive.

    steps_back: records that have a smaller offset in their source than the record in front of them, among those from
    the same partition of the source in the same partition of the topic. other_records: of the topic, which do not come
    from there. timestamps_compared: not where the topic has its own.
    """

    name: str
    origin: str
    archived_topic: str
    archive: str
    partitions: list[ReplayedPartition]
    differences: list[Difference]
    steps_back: int
    other_records: int
    timestamps_compared: bool

    @property
    def missing(self) -> int:
        return sum(max(0, each.records - each.replayed) for each in self.partitions)

    @property
    def twice(self) -> int:
        return sum(each.twice for each in self.partitions)

    @property
    def equal(self) -> bool:
        """Each record is there, as it was, whatever is there besides."""
        return all(each.equal for each in self.partitions)

    @property
    def problems(self) -> list[str]:
        what = f"{self.archived_topic} in {self.archive}"
        found = []
        if self.missing:
            found.append(f"{self.name} ({self.origin}) has {self.missing:,} records less than {what}")
        elif not self.equal:
            found.append(f"{self.name} ({self.origin}) has other records than {what}")
        if self.twice:
            found.append(f"{self.twice:,} records of {what} are in {self.name} ({self.origin}) more than once")
        if self.steps_back:
            found.append(
                f"{self.name} ({self.origin}) has records of {what} in another order: {self.steps_back:,} steps back"
            )
        return found


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The whole result. cluster_id: None for an archive alone."""

    at_ms: int
    cluster_id: str | None
    topics: list[TopicReport]
    comparisons: list[Comparison] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    replays: list[ReplayReport] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """Sentences about what must not be: records that are there twice, sides that differ, an archive with damage."""
        twice = [
            f"{each.duplicate_offsets:,} records of {topic.name}-{each.partition} ({topic.origin}) have others' offsets"
            for topic in self.topics
            for each in topic.partitions
            if each.duplicate_offsets
        ]
        differing = [f"{each.left} and {each.right} differ" for each in self.comparisons if not each.equal]
        replayed = [line for each in self.replays for line in each.problems]
        return [*twice, *differing, *replayed, *self.damage]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"problems": self.problems}
