"""Keys of a topic: how many there are, the heaviest, and those whose records are in several partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import SIZE
from .report import KeyReport, KeysReport
from .subjects import Stretch, Subject, key_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


def keys_report(subject: Subject, listed: int) -> KeysReport:
    """Keys are told apart by their `xxhash64`; the listed ones are looked up by an offset at which they were seen."""
    from pyspark import StorageLevel
    from pyspark.sql.functions import expr

    keys = _keys(subject.records()).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        totals = keys.agg(
            expr("COUNT(1)").alias("distinct"), expr("COUNT_IF(partitions > 1)").alias("scattered")
        ).collect()[0]
        heaviest = keys.orderBy(expr("records").desc(), "hash").limit(listed).collect()
        scattered = (
            keys.where("partitions > 1").orderBy(expr("records").desc(), "hash").limit(listed).collect()
            if totals["scattered"]
            else []
        )
    finally:
        keys.unpersist()
    places = {(row["partition"], row["offset"]) for row in (*heaviest, *scattered)}
    found = {
        (each.partition, each.offset): key_text(each.key)
        for each in subject.find([Stretch(partition, offset, offset + 1) for partition, offset in sorted(places)])
    }

    def report(row: Row) -> KeyReport:
        key = found.get((row["partition"], row["offset"]))
        return KeyReport(key, row["partition"], row["offset"], row["records"], row["size_bytes"], row["partitions"])

    return KeysReport(
        totals["distinct"], totals["scattered"], [report(row) for row in heaviest], [report(row) for row in scattered]
    )


def _keys(records: DataFrame) -> DataFrame:
    from pyspark.sql.functions import expr

    by_partition = (
        records.where("key IS NOT NULL")
        .groupBy(expr("xxhash64(key)").alias("hash"), "partition")
        .agg(
            expr("COUNT(1)").alias("records"),
            expr(f"SUM({SIZE})").alias("size_bytes"),
            expr("MAX(offset)").alias("offset"),
        )
    )
    return by_partition.groupBy("hash").agg(
        expr("COUNT(1)").alias("partitions"),
        expr("SUM(records)").alias("records"),
        expr("SUM(size_bytes)").alias("size_bytes"),
        expr("MIN_BY(offset, partition)").alias("offset"),
        expr("MIN(partition)").alias("partition"),
    )
