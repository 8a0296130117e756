"""How the tests here read and write topics with Spark: thin names over the connector's options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAM_DEADLINE_S = 120


def read_batch(spark: SparkSession, bootstrap: str, topic: str, **options: str) -> DataFrame:
    """The topic as it is now, with its headers."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    return reader.option("includeHeaders", "true").options(**options).load()


def read_stream(spark: SparkSession, bootstrap: str, topic: str, **options: str) -> DataFrame:
    """The topic as a stream, from its beginning unless `startingOffsets` says otherwise."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    return reader.option("startingOffsets", "earliest").option("includeHeaders", "true").options(**options).load()


def write_batch(frame: DataFrame, bootstrap: str, topic: str) -> None:
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    writer.option("includeHeaders", "true").option("topic", topic).save()


def copy_available(source: DataFrame, bootstrap: str, topic: str, checkpoint: Path) -> None:
    """Runs a query that writes the stream to `topic` until nothing is left to read, resuming from its checkpoint."""
    writer = source.select("key", "value", "headers").writeStream.format("kafka")
    query = (
        writer.option("kafka.bootstrap.servers", bootstrap)
        .option("includeHeaders", "true")
        .option("topic", topic)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(STREAM_DEADLINE_S), f"the query did not end: {query.lastProgress}"
    finally:
        query.stop()
