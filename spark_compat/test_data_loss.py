"""Records that are gone before a query has read them, and topics that change while it runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from compat_tests.topics import create_topic, fill_topic, wait_for_leaders
from compat_tests.waiting import until
from spark_compat.streams import (
    await_rows,
    batches_to_the_end,
    numbers,
    read_batch,
    read_stream,
    run_to_the_end,
    running,
    write_batch,
    write_numbers,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker
    from compat_tests.conftest import FreshBroker


def delete_records(broker: Broker, topic: str, before: int) -> None:
    """Of partition 0."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result()


@pytest.mark.parametrize("fails", [True, False])
def test_records_that_were_deleted_in_front_of_a_query_end_it_or_are_skipped(
    fails: bool, spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    fill_topic(broker, topic, 1, 10)
    options = {"failOnDataLoss": str(fails).lower()}
    stream = read_stream(spark, broker.bootstrap, topic, **options)
    assert batches_to_the_end(stream, tmp_path, numbers) == [list(range(10))]
    write_numbers(spark, broker.bootstrap, topic, range(10, 30))
    delete_records(broker, topic, 15)
    if fails:
        with pytest.raises(Exception, match=r"(?i)some data may have been lost|data loss|KAFKA_DATA_LOSS"):
            run_to_the_end(
                stream.writeStream.foreachBatch(lambda frame, _: frame.count()).option(
                    "checkpointLocation", str(tmp_path)
                )
            )
    else:
        assert batches_to_the_end(stream, tmp_path, numbers) == [list(range(15, 30))]


@pytest.mark.parametrize("fails", [True, False])
def test_a_batch_over_records_that_were_deleted_fails_or_skips_them(
    fails: bool, spark: SparkSession, broker: Broker, topic: str
) -> None:
    fill_topic(broker, topic, 1, 30)
    delete_records(broker, topic, 15)
    options = {"failOnDataLoss": str(fails).lower(), "startingOffsets": json.dumps({topic: {"0": 5}})}
    frame = read_batch(spark, broker.bootstrap, topic, **options)
    if fails:
        with pytest.raises(Exception, match=r"(?i)some data may have been lost|data loss|KAFKA_DATA_LOSS"):
            frame.count()
    else:
        assert numbers(frame) == list(range(15, 30))


def test_retention_passes_a_query_by(spark: SparkSession, fresh_broker: FreshBroker, tmp_path: Path) -> None:
    """The segments that it has not read yet go by age, while others are written."""
    broker = fresh_broker({"log.retention.check.interval.ms": "200"})
    topic = "short-lived"
    create_topic(
        broker, topic, 1, {"segment.bytes": "1048576", "retention.bytes": "1048576", "file.delete.delay.ms": "0"}
    )
    rows = spark.range(6000).selectExpr("CAST(id AS STRING) AS value", "RPAD('', 1000, 'x') AS key")
    stream = read_stream(
        spark, broker.bootstrap, topic, failOnDataLoss="false", maxOffsetsPerTrigger="1000"
    ).selectExpr("CAST(value AS STRING) AS value", "offset")

    def first_offset() -> int:
        """Segments may go between the plan of this query and its end."""
        frame = read_batch(spark, broker.bootstrap, topic, failOnDataLoss="false")
        return frame.agg({"offset": "min"}).collect()[0][0]

    write_batch(rows.coalesce(1), broker.bootstrap, topic, **{"kafka.compression.type": "none"})
    until(lambda: first_offset() > 1000, "segments are gone")
    batches = batches_to_the_end(
        stream,
        tmp_path / "checkpoint",
        lambda each: sorted((row["offset"], int(row["value"])) for row in each.collect()),
    )
    found = [pair for batch in batches for pair in batch]
    assert [number for _, number in found] == list(range(found[0][1], 6000))
    assert found[0][0] > 1000


def test_new_partitions_are_read_while_a_query_runs(
    spark: SparkSession, broker: Broker, topic: str, table: str
) -> None:
    fill_topic(broker, topic, 1, 10)
    stream = read_stream(spark, broker.bootstrap, topic, **{"kafka.metadata.max.age.ms": "500"})
    with running(stream.writeStream.format("memory").queryName(table)) as query:
        query.processAllAvailable()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_partitions([NewPartitions(topic, 4)])[topic].result()
        wait_for_leaders(broker, topic, 4)
        frame = spark.range(10, 50).selectExpr("CAST(id AS STRING) AS value", "CAST(id % 4 AS INT) AS partition")
        write_batch(frame, broker.bootstrap, topic)
        await_rows(spark, query, 50)
    assert numbers(spark.table(table)) == list(range(50))
    assert {row["partition"] for row in spark.table(table).select("partition").distinct().collect()} == {0, 1, 2, 3}


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_is_deleted_while_a_query_runs_ends_it_or_is_left_out(
    fails: bool, spark: SparkSession, broker: Broker, unique: Callable[[str], str], table: str, tmp_path: Path
) -> None:
    stays, goes = unique("stays"), unique("goes")
    fill_topic(broker, stays, 1, 10)
    fill_topic(broker, goes, 1, 10)
    pattern = "|".join(each.replace(".", "[.]") for each in (stays, goes))
    options = {"subscribePattern": pattern, "failOnDataLoss": str(fails).lower()}
    writer = read_stream(spark, broker.bootstrap, **options).writeStream.format("memory").queryName(table)
    with running(writer.option("checkpointLocation", str(tmp_path))) as query:
        query.processAllAvailable()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.delete_topics([goes])[goes].result()
        write_numbers(spark, broker.bootstrap, stays, range(10, 20))
        if fails:
            until(lambda: query.exception() is not None, "the query ends")
            assert goes in str(query.exception())
        else:
            await_rows(spark, query, 30)
