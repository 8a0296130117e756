"""When a streaming query takes how much: every trigger, and the options that bound a micro-batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.topics import fill_topic
from spark_compat.streams import await_rows, batches_to_the_end, numbers, read_stream, running, write_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker

FOREVER = "1h"


@pytest.mark.parametrize(
    "trigger",
    [{}, {"processingTime": "200 milliseconds"}, {"availableNow": True}, {"once": True}, {"continuous": "1 second"}],
    ids=str,
)
def test_every_trigger_reads_all_there_is(
    trigger: dict[str, Any], spark: SparkSession, broker: Broker, topic: str, table: str, tmp_path: Path
) -> None:
    # A continuous query keeps a core for each partition, and there are two.
    fill_topic(broker, topic, 1 if "continuous" in trigger else 3, 90)
    stream = read_stream(spark, broker.bootstrap, topic).selectExpr("value")
    writer = stream.writeStream.format("memory").queryName(table).option("checkpointLocation", str(tmp_path))
    ends = "availableNow" in trigger or "once" in trigger
    with running(writer.trigger(**trigger) if trigger else writer) as query:
        if ends:
            query.awaitTermination()
        await_rows(spark, query, 90)
        if not ends:
            write_numbers(spark, broker.bootstrap, topic, range(90, 100))
            await_rows(spark, query, 100)
    assert numbers(spark.table(table)) == list(range(90 if ends else 100))


def test_max_offsets_per_trigger_cuts_what_is_there(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    fill_topic(broker, topic, 2, 100)
    stream = read_stream(spark, broker.bootstrap, topic, maxOffsetsPerTrigger="30")
    assert batches_to_the_end(stream, tmp_path, lambda each: each.count()) == [30, 30, 30, 10]


def test_min_offsets_per_trigger_waits_for_more(
    spark: SparkSession, broker: Broker, topic: str, table: str, tmp_path: Path
) -> None:
    fill_topic(broker, topic, 2, 10)
    options = {"minOffsetsPerTrigger": "20", "maxTriggerDelay": FOREVER}
    stream = read_stream(spark, broker.bootstrap, topic, **options).selectExpr("value")
    writer = stream.writeStream.format("memory").queryName(table).option("checkpointLocation", str(tmp_path))
    with running(writer) as query:
        query.processAllAvailable()
        assert spark.table(table).count() == 10, "the first micro-batch takes what there is"
        write_numbers(spark, broker.bootstrap, topic, range(10, 29))
        query.processAllAvailable()
        assert spark.table(table).count() == 10, "19 are too few"
        write_numbers(spark, broker.bootstrap, topic, range(29, 30))
        await_rows(spark, query, 30)


def test_max_trigger_delay_ends_that_wait(
    spark: SparkSession, broker: Broker, topic: str, table: str, tmp_path: Path
) -> None:
    fill_topic(broker, topic, 2, 10)
    options = {"minOffsetsPerTrigger": "1000000", "maxTriggerDelay": "1s"}
    stream = read_stream(spark, broker.bootstrap, topic, **options).selectExpr("value")
    writer = stream.writeStream.format("memory").queryName(table).option("checkpointLocation", str(tmp_path))
    with running(writer) as query:
        query.processAllAvailable()
        write_numbers(spark, broker.bootstrap, topic, range(10, 13))
        await_rows(spark, query, 13)
