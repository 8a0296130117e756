"""How the tests here read and write topics with Spark: thin names over the connector's options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat_tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

STREAM_DEADLINE_S = 120


def read_batch(spark: SparkSession, bootstrap: str, topic: str | None = None, **options: str) -> DataFrame:
    """The topic as it is now, with its headers; without `topic`, what the options ask for."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("includeHeaders", "true")
    if topic is not None:
        reader = reader.option("subscribe", topic)
    return reader.options(**options).load()


def read_stream(spark: SparkSession, bootstrap: str, topic: str | None = None, **options: str) -> DataFrame:
    """The topic as a stream, from its beginning unless `startingOffsets` says otherwise."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    reader = reader.option("startingOffsets", "earliest").option("includeHeaders", "true")
    if topic is not None:
        reader = reader.option("subscribe", topic)
    return reader.options(**options).load()


def write_batch(frame: DataFrame, bootstrap: str, topic: str | None = None, **options: str) -> None:
    """To `topic`; without it, to the topics in the column of that name."""
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("includeHeaders", "true")
    if topic is not None:
        writer = writer.option("topic", topic)
    writer.options(**options).save()


def write_numbers(spark: SparkSession, bootstrap: str, topic: str, numbers: range) -> None:
    """One after the other: in each partition they are in order."""
    rows = [(str(i % 5).encode(), str(i).encode()) for i in numbers]
    write_batch(spark.createDataFrame(rows, "key binary, value binary").coalesce(1), bootstrap, topic)


def values(frame: DataFrame) -> list[bytes | None]:
    """Of all partitions, sorted, those that are null in front."""
    found = [None if row.value is None else bytes(row.value) for row in frame.select("value").collect()]
    return sorted(found, key=lambda value: (value is not None, value))


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in frame.select("value").collect())


def topic_writer(stream: DataFrame, bootstrap: str, topic: str) -> DataStreamWriter:
    writer = stream.select("key", "value", "headers").writeStream.format("kafka")
    return writer.option("kafka.bootstrap.servers", bootstrap).option("includeHeaders", "true").option("topic", topic)


def copy_available(source: DataFrame, bootstrap: str, topic: str, checkpoint: Path) -> None:
    """Runs a query that writes the stream to `topic` until nothing is left to read, resuming from its checkpoint."""
    run_to_the_end(topic_writer(source, bootstrap, topic).option("checkpointLocation", str(checkpoint)))


def run_to_the_end(writer: DataStreamWriter) -> StreamingQuery:
    """Runs a query over what there is now. Raises what ended it."""
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(STREAM_DEADLINE_S), f"the query did not end: {query.lastProgress}"
    finally:
        query.stop()
    return query


def batches_to_the_end(stream: DataFrame, checkpoint: Path, of_batch: Callable[[DataFrame], Any]) -> list[Any]:
    """What `of_batch` gives for each micro-batch of what there is now."""
    found: list[Any] = []
    writer = stream.writeStream.foreachBatch(lambda frame, _: found.append(of_batch(frame)))
    run_to_the_end(writer.option("checkpointLocation", str(checkpoint)))
    return found


def numbers_to_the_end(stream: DataFrame, checkpoint: Path) -> list[int]:
    """The numbers of all micro-batches of what there is now, sorted."""
    return sorted(number for batch in batches_to_the_end(stream, checkpoint, numbers) for number in batch)


def await_rows(spark: SparkSession, query: StreamingQuery, count: int) -> None:
    """The query's table in memory has that many rows, and no more. Raises what ended the query."""

    def rows() -> int:
        return spark.table(query.name).count()

    until(lambda: query.exception() is not None or rows() >= count, f"{count} rows in {query.name}")
    error = query.exception()
    if error is not None:
        raise error
    assert rows() == count


@contextmanager
def running(writer: DataStreamWriter) -> Iterator[StreamingQuery]:
    """A query that goes on until the block ends."""
    query = writer.start()
    try:
        yield query
    finally:
        query.stop()
