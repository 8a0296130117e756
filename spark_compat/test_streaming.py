"""Spark streams from topic to topic, and resumes from its checkpoint after a restart of the query and of the broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spark_compat.streams import copy_available, numbers, read_batch, read_stream, running, write_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker


def test_query_resumes_after_it_and_after_the_broker_restarted(
    spark: SparkSession, fresh_broker: Broker, tmp_path: Path
) -> None:
    broker = fresh_broker()
    source, sink, checkpoint = "numbers", "copied-numbers", tmp_path / "checkpoint"

    write_numbers(spark, broker.bootstrap, source, range(300))
    copy_available(read_stream(spark, broker.bootstrap, source), broker.bootstrap, sink, checkpoint)
    assert numbers(read_batch(spark, broker.bootstrap, sink)) == list(range(300))

    write_numbers(spark, broker.bootstrap, source, range(300, 500))
    copy_available(read_stream(spark, broker.bootstrap, source), broker.bootstrap, sink, checkpoint)
    assert numbers(read_batch(spark, broker.bootstrap, sink)) == list(range(500))

    broker.stop()
    broker.start()
    write_numbers(spark, broker.bootstrap, source, range(500, 600))
    copy_available(read_stream(spark, broker.bootstrap, source), broker.bootstrap, sink, checkpoint)
    assert numbers(read_batch(spark, broker.bootstrap, sink)) == list(range(600))


def test_running_query_picks_up_what_is_written_meanwhile(
    spark: SparkSession, broker: Broker, topic: str, table: str
) -> None:
    write_numbers(spark, broker.bootstrap, topic, range(10))
    stream = read_stream(spark, broker.bootstrap, topic).selectExpr("CAST(value AS STRING) AS value")
    with running(stream.writeStream.format("memory").queryName(table)) as query:
        query.processAllAvailable()
        write_numbers(spark, broker.bootstrap, topic, range(10, 20))
        query.processAllAvailable()
        assert numbers(spark.table(table)) == list(range(20))


def test_latest_starting_offsets_skip_what_was_there(
    spark: SparkSession, broker: Broker, topic: str, table: str
) -> None:
    write_numbers(spark, broker.bootstrap, topic, range(10))
    stream = read_stream(spark, broker.bootstrap, topic, startingOffsets="latest").selectExpr("CAST(value AS STRING)")
    with running(stream.writeStream.format("memory").queryName(table)) as query:
        query.processAllAvailable()
        write_numbers(spark, broker.bootstrap, topic, range(10, 15))
        query.processAllAvailable()
        assert numbers(spark.table(table)) == list(range(10, 15))


def test_max_offsets_per_trigger_splits_the_stream_into_batches(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    write_numbers(spark, broker.bootstrap, topic, range(100))
    sizes: list[int] = []
    stream = read_stream(spark, broker.bootstrap, topic, maxOffsetsPerTrigger="30")
    writer = stream.writeStream.foreachBatch(lambda frame, _: sizes.append(frame.count()))
    with running(writer.option("checkpointLocation", str(tmp_path))) as query:
        query.processAllAvailable()
    assert sum(sizes) == 100
    assert max(sizes) <= 30
