"""Into how many tasks Spark cuts what it reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.topics import create_topic
from spark_compat.streams import batches_to_the_end, read_batch, read_stream, write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker

RECORDS = 30_000

IN_BATCHES = {"maxRecordsPerPartition": "2000"}
"""Spark 4.0.0 looks at it in batches only beside `minPartitions` (KafkaOffsetReaderAdmin); streams take it alone."""


@pytest.mark.parametrize(
    ("options", "in_a_batch", "in_a_stream"),
    [
        ({}, 3, 3),
        ({"minPartitions": "7"}, 6, 6),
        ({"minPartitions": "8"}, 9, 9),
        ({"minPartitions": "2"}, 3, 3),
        (IN_BATCHES, 3, 15),
        (IN_BATCHES | {"minPartitions": "1"}, 3, 15),
        (IN_BATCHES | {"minPartitions": "4"}, 15, 15),
    ],
    ids=str,
)
def test_options_say_how_many_tasks_read(
    options: dict[str, str],
    in_a_batch: int,
    in_a_stream: int,
    spark: SparkSession,
    broker: Broker,
    topic: str,
    tmp_path: Path,
) -> None:
    create_topic(broker, topic, 3)
    frame = spark.range(RECORDS).selectExpr("CAST(id AS STRING) AS value", "CAST(id % 3 AS INT) AS partition")
    write_batch(frame, broker.bootstrap, topic)
    batch = read_batch(spark, broker.bootstrap, topic, **options)
    assert (batch.rdd.getNumPartitions(), batch.select("value").distinct().count()) == (in_a_batch, RECORDS)
    stream = read_stream(spark, broker.bootstrap, topic, **options)
    found = batches_to_the_end(stream, tmp_path, lambda each: (each.rdd.getNumPartitions(), each.count()))
    assert found == [(in_a_stream, RECORDS)]
