"""The records of topics as a table of Spark, by offsets that the caller has planned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .small_tables import small_table
from .source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Ranges = Mapping[str, Mapping[int, tuple[int, int]]]
"""Offsets `[start, end)` by topic and partition."""

COLUMNS = ("key", "value", "partition", "offset", "timestamp", "timestampType", "headers", "topic")
"""Of Spark's Kafka source, but leader epochs, which it does not give."""

SCHEMA = (
    "key BINARY, value BINARY, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING"
)


def offsets_in(ranges: Ranges) -> int:
    return sum(end - start for rows in ranges.values() for start, end in rows.values())


def first_of(ranges: Ranges, most: int) -> Ranges:
    """The first `most` offsets of the ranges together, in each partition its part of them, so that all come to their
    ends together; where there are more partitions than offsets, some wait.
    """
    left = offsets_in(ranges)
    if left == 0:
        return {}
    share = min(1.0, most / left)
    room = most
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for topic, rows in ranges.items():
        for partition, (start, end) in rows.items():
            size = end - start
            taken = min(size, room, size if share == 1.0 else max(1, int(size * share)))
            if taken > 0:
                room -= taken
                found.setdefault(topic, {})[partition] = (start, start + taken)
    return found


def within(records: DataFrame, ranges: Mapping[int, tuple[int, int]]) -> DataFrame:
    """Those of a topic's records that are in the ranges of their partitions."""
    from pyspark.sql.functions import broadcast

    rows = [(partition, start, end) for partition, (start, end) in ranges.items() if start < end]
    if not rows:
        return records.where("FALSE")
    # The bounds of all partitions together: files of Parquet are read by them.
    near = records.where(f"offset >= {min(row[1] for row in rows)} AND offset < {max(row[2] for row in rows)}")
    limits = small_table(records.sparkSession, rows, "partition INT, `start` BIGINT, `end` BIGINT")
    return near.join(broadcast(limits), "partition").where("offset >= start AND offset < end").select(*records.columns)


def read_ranges(
    spark: SparkSession,
    source: Source,
    ranges: Ranges,
    isolation_level: str,
    *,
    fail_on_loss: bool = True,
    split: bool = True,
) -> DataFrame:
    """The records with these offsets. fail_on_loss: where one is gone already. split: a partition of a topic may be
    read by several tasks; else each has one of its own, and gives its records in their order.
    """
    options = source.reader_options() | {
        "assign": json.dumps({topic: sorted(rows) for topic, rows in ranges.items()}),
        "startingOffsets": _offsets(ranges, 0),
        "endingOffsets": _offsets(ranges, 1),
        "includeHeaders": "true",
        "failOnDataLoss": str(fail_on_loss).lower(),
        "kafka.isolation.level": isolation_level,
    }
    if split:
        options["minPartitions"] = str(spark.sparkContext.defaultParallelism)
    return spark.read.format("kafka").options(**options).load().select(*COLUMNS)


def _offsets(ranges: Ranges, side: int) -> str:
    return json.dumps({topic: {str(each): row[side] for each, row in rows.items()} for topic, rows in ranges.items()})
