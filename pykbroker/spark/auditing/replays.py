"""A topic beside the archive whose records were replayed to it, record by record, as their identities say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..identities import HEADERS_BEFORE, Origin, identified
from ..records import EMPTY_CHECKSUM
from .comparing import differences
from .report import PartitionReport, ReplayedPartition, ReplayReport
from .scanning import scan
from .subjects import Subject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Replay:
    """A topic, and what had to be replayed to it. selected: those of records with the offsets of the archive that had
    to be. timestamps: whether the topic has those of the archive, or its own.
    """

    topic: Subject
    archived: DataFrame
    archive: str
    origin: Origin
    selected: Callable[[DataFrame], DataFrame]
    timestamps: bool

    def report(self, records: int, listed: int) -> ReplayReport:
        """The result, for a topic with so many records."""
        copies = identified(self.topic.records(), self.origin)
        order = self._reports(_in_the_order_of_the_topic(copies))
        sent = self.selected(_under_their_identities(copies))
        expected = self._reports(self._comparable(self.archived))
        found = self._reports(self._comparable(sent))
        twice = {each.partition: each.duplicate_offsets for each in found if each.duplicate_offsets}
        if twice:
            sent = sent.dropDuplicates(["partition", "offset"])
            found = self._reports(self._comparable(sent))
        partitions = _partitions(expected, found, twice)
        differing = []
        if not all(each.equal for each in partitions):
            differing = differences(self._comparable(sent), self._comparable(self.archived), listed)
        return ReplayReport(
            name=self.topic.name,
            origin=self.topic.origin,
            archived_topic=self.origin.topic,
            archive=self.archive,
            partitions=partitions,
            differences=differing,
            steps_back=sum(each.backwards for each in order),
            other_records=records - sum(each.records for each in order),
            timestamps_compared=self.timestamps,
        )

    def _reports(self, records: DataFrame) -> list[PartitionReport]:
        return scan(records, self.topic.offsets, 1, keys=False).partitions

    def _comparable(self, records: DataFrame) -> DataFrame:
        """A copy's timestamp was made by its producer, whatever the type of the one in the archive."""
        from pyspark.sql.functions import expr

        records = records.withColumn("timestampType", expr("0"))
        return records if self.timestamps else records.withColumn("timestamp", expr("timestamp_millis(0)"))


def _under_their_identities(copies: DataFrame) -> DataFrame:
    return copies.selectExpr(
        "key",
        "value",
        "source_partition AS partition",
        "source_offset AS offset",
        "timestamp",
        "timestampType",
        f"{HEADERS_BEFORE} AS headers",
    )


def _in_the_order_of_the_topic(copies: DataFrame) -> DataFrame:
    """Records whose timestamps run backwards where the offsets of their source do: a partition for each pair of a
    partition of the topic and one of the source.
    """
    return copies.selectExpr(
        "CAST(NULL AS BINARY) AS key",
        "CAST(NULL AS BINARY) AS value",
        "SHIFTLEFT(CAST(partition AS BIGINT), 32) + source_partition AS partition",
        "offset",
        "timestamp_micros(source_offset) AS timestamp",
        "0 AS timestampType",
        "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers",
    )


def _partitions(
    expected: list[PartitionReport], found: list[PartitionReport], twice: dict[int, int]
) -> list[ReplayedPartition]:
    """The partitions of either side."""
    ours = {each.partition: (each.records, each.checksum) for each in expected}
    theirs = {each.partition: (each.records, each.checksum) for each in found}
    rows = []
    for partition in sorted({*ours, *theirs}):
        records, checksum = ours.get(partition, (0, EMPTY_CHECKSUM))
        copied, copied_checksum = theirs.get(partition, (0, EMPTY_CHECKSUM))
        rows.append(ReplayedPartition(partition, records, copied, twice.get(partition, 0), checksum, copied_checksum))
    return rows
