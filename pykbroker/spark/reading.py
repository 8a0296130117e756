"""The records of topics as a table of Spark, by offsets that the caller has planned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

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


def read_ranges(
    spark: SparkSession, source: Source, ranges: Ranges, isolation_level: str, *, fail_on_loss: bool = True
) -> DataFrame:
    """The records with these offsets. fail_on_loss: where one is gone already."""
    options = source.reader_options() | {
        "assign": json.dumps({topic: sorted(rows) for topic, rows in ranges.items()}),
        "startingOffsets": _offsets(ranges, 0),
        "endingOffsets": _offsets(ranges, 1),
        "includeHeaders": "true",
        "failOnDataLoss": str(fail_on_loss).lower(),
        "minPartitions": str(spark.sparkContext.defaultParallelism),
        "kafka.isolation.level": isolation_level,
    }
    return spark.read.format("kafka").options(**options).load().select(*COLUMNS)


def _offsets(ranges: Ranges, side: int) -> str:
    return json.dumps({topic: {str(each): row[side] for each, row in rows.items()} for topic, rows in ranges.items()})
