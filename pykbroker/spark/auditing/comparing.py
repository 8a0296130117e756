"""Two tables of records beside each other, by checksums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from ..records import EMPTY_CHECKSUM, MODULUS, RECORD_HASH, checksum_text
from .blocks import BLOCK
from .report import ComparedPartition, Difference, PartitionReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NOTHING = (EMPTY_CHECKSUM, 0)


def compared(
    partitions: Sequence[int], left: Sequence[PartitionReport], right: Sequence[PartitionReport]
) -> list[ComparedPartition]:
    """Compare all fields but the topic's name, in the partitions of both."""
    return _side_by_side(partitions, left, right, attrgetter("checksum", "records"))


def compared_by_content(
    partitions: Sequence[int],
    other_partitions: Sequence[int],
    left: Sequence[PartitionReport],
    right: Sequence[PartitionReport],
) -> list[ComparedPartition]:
    """Compare keys, values and headers: of all records together where the topics' numbers of partitions differ."""
    if len(partitions) != len(other_partitions):
        return [ComparedPartition(None, _records(left), _records(right), _content(left), _content(right))]
    return _side_by_side(partitions, left, right, attrgetter("content_checksum", "records"))


def _side_by_side(
    partitions: Sequence[int],
    left: Sequence[PartitionReport],
    right: Sequence[PartitionReport],
    checksum_and_records: Callable[[PartitionReport], tuple[str, int]],
) -> list[ComparedPartition]:
    ours = {each.partition: checksum_and_records(each) for each in left}
    others = {each.partition: checksum_and_records(each) for each in right}
    found = []
    for partition in partitions:
        (checksum, records), (other, other_records) = ours.get(partition, _NOTHING), others.get(partition, _NOTHING)
        found.append(ComparedPartition(partition, records, other_records, checksum, other))
    return found


def differences(left: DataFrame, right: DataFrame, listed: int) -> list[Difference]:
    """The first sixteen offsets each in which two tables of records differ, by partition and offset."""
    from pyspark.sql.functions import expr

    ours, others = (
        records.groupBy("partition", expr(f"offset DIV {BLOCK}").alias("block"))
        .agg(expr("COUNT(1)"), expr(f"SUM({RECORD_HASH})"))
        .toDF("partition", "block", *names)
        for records, names in ((left, ("records", "checksum")), (right, ("other_records", "other_checksum")))
    )
    rows = (
        ours.join(others, ["partition", "block"], "full_outer")
        .where("NOT (records <=> other_records AND checksum <=> other_checksum)")
        .orderBy("partition", "block")
        .limit(listed)
        .collect()
    )
    return [
        Difference(
            row["partition"],
            row["block"] * BLOCK,
            row["block"] * BLOCK + BLOCK - 1,
            row["records"] or 0,
            row["other_records"] or 0,
        )
        for row in rows
    ]


def _records(reports: Sequence[PartitionReport]) -> int:
    return sum(each.records for each in reports)


def _content(reports: Sequence[PartitionReport]) -> str:
    return checksum_text(sum(int(each.content_checksum, 16) for each in reports) % MODULUS)
