"""A row for each sixteen offsets of a partition, from which its report is computed whatever the order of its records.

Each row has the sixteen timestamps in columns of their own: whatever depends on the order of records (gaps, duplicates,
steps back) is exact, and nothing is sorted but these rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING

from ..records import CONTENT_HASH, RECORD_HASH, SIZE, checksum_text
from .report import Gap, PartitionReport

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BLOCK = 16
_SHIFT = 4
_TIMES = [f"t{place}" for place in range(BLOCK)]


def blocks_of(records: DataFrame) -> DataFrame:
    """A row for each partition and block."""
    from pyspark.sql.functions import expr

    sums = {
        "records": "COUNT(1)",
        "size_bytes": f"SUM({SIZE})",
        "null_keys": "SUM(INT(key IS NULL))",
        "null_values": "SUM(INT(value IS NULL))",
        "checksum": f"SUM({RECORD_HASH})",
        "content_checksum": f"SUM({CONTENT_HASH})",
    }
    times = {
        name: f"MAX(IF((offset & {BLOCK - 1}) = {place}, unix_micros(timestamp), NULL))"
        for place, name in enumerate(_TIMES)
    }
    return records.groupBy("partition", expr(f"SHIFTRIGHT(offset, {_SHIFT})").alias("block")).agg(
        *(expr(text).alias(name) for name, text in (sums | times).items())
    )


@contextmanager
def kept(blocks: DataFrame) -> Iterator[DataFrame]:
    """The blocks as a table that is computed once, in memory as far as there is room."""
    from pyspark import StorageLevel

    table = blocks.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield table
    finally:
        table.unpersist()


def partition_reports(blocks: DataFrame) -> list[PartitionReport]:
    """The partitions that have records."""
    from pyspark.sql.functions import expr

    lined_up = _lined_up(blocks)
    present = " + ".join(f"INT({name} IS NOT NULL)" for name in _TIMES)
    steps = [
        f"(COALESCE({', '.join([*reversed(_TIMES[:place]), 'time_before'])}) - {_TIMES[place]})"
        for place in range(BLOCK)
    ]
    totals = {
        "records": "SUM(records)",
        "size_bytes": "SUM(size_bytes)",
        "first_offset": "MIN(first_offset)",
        "last_offset": "MAX(last_offset)",
        "present": f"SUM({present})",
        "null_keys": "SUM(null_keys)",
        "null_values": "SUM(null_values)",
        "first_timestamp": f"MIN(LEAST({', '.join(_TIMES)}))",
        "last_timestamp": f"MAX(GREATEST({', '.join(_TIMES)}))",
        "backwards": f"SUM({' + '.join(f'INT(COALESCE({step} > 0, FALSE))' for step in steps)})",
        "largest_step_back": f"MAX(GREATEST(0L, {', '.join(steps)}))",
        "checksum": "SUM(checksum)",
        "content_checksum": "SUM(content_checksum)",
    }
    rows = lined_up.groupBy("partition").agg(*(expr(text).alias(name) for name, text in totals.items())).collect()
    reports = [
        PartitionReport(
            partition=row["partition"],
            records=row["records"],
            size_bytes=row["size_bytes"],
            first_offset=row["first_offset"],
            last_offset=row["last_offset"],
            missing_offsets=row["last_offset"] - row["first_offset"] + 1 - row["present"],
            duplicate_offsets=row["records"] - row["present"],
            null_keys=row["null_keys"],
            null_values=row["null_values"],
            first_timestamp_ms=row["first_timestamp"] // 1000,
            last_timestamp_ms=row["last_timestamp"] // 1000,
            backwards=row["backwards"],
            largest_step_back_ms=row["largest_step_back"] // 1000,
            checksum=checksum_text(row["checksum"]),
            content_checksum=checksum_text(row["content_checksum"]),
        )
        for row in rows
    ]
    return sorted(reports, key=lambda each: each.partition)


def longest_gaps(blocks: DataFrame, listed: int) -> list[Gap]:
    from pyspark.sql.functions import expr

    missing: list[Column] = [expr(f"{name} IS NULL") for name in _TIMES]
    incomplete = reduce(lambda one, other: one | other, missing) | expr("first_offset > offset_before + 1")
    offsets = ", ".join(
        f"IF({name} IS NULL, NULL, SHIFTLEFT(block, {_SHIFT}) + {place})" for place, name in enumerate(_TIMES)
    )
    rows = (
        _lined_up(blocks)
        .where(incomplete)
        .selectExpr("partition", f"FILTER(ARRAY(offset_before, {offsets}), each -> each IS NOT NULL) AS offsets")
        .selectExpr(
            "partition",
            "EXPLODE(ZIP_WITH(SLICE(offsets, 1, SIZE(offsets) - 1), SLICE(offsets, 2, SIZE(offsets)), (one, next) -> "
            "STRUCT(one + 1 AS first, next - 1 AS last))) AS gap",
        )
        .where("gap.last >= gap.first")
        .orderBy(expr("gap.first - gap.last"), "partition", "gap.first")
        .limit(listed)
        .collect()
    )
    return [Gap(row["partition"], row["gap"]["first"], row["gap"]["last"]) for row in rows]


def _lined_up(blocks: DataFrame) -> DataFrame:
    """One row for each block, with its first and last offset, and the offset and the timestamp in front of it."""
    from pyspark.sql import Window
    from pyspark.sql.functions import expr, lag

    places = [f"IF({name} IS NULL, NULL, {place})" for place, name in enumerate(_TIMES)]
    start = f"SHIFTLEFT(block, {_SHIFT})"
    ended = (
        blocks.withColumn("first_offset", expr(f"{start} + COALESCE({', '.join(places)})"))
        .withColumn("last_offset", expr(f"{start} + COALESCE({', '.join(reversed(places))})"))
        .withColumn("last_time", expr(f"COALESCE({', '.join(reversed(_TIMES))})"))
    )
    order = Window.partitionBy("partition").orderBy("block")
    return ended.withColumn("offset_before", lag("last_offset").over(order)).withColumn(
        "time_before", lag("last_time").over(order)
    )
