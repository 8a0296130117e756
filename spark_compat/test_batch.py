"""Spark reads and writes topics as batches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from spark_compat.streams import read_batch, write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker


def test_rows_come_back_as_they_were_written(spark: SparkSession, broker: Broker, topic: str) -> None:
    rows = [(f"key-{i % 7}".encode(), f"value {i}".encode()) for i in range(1000)]
    write_batch(spark.createDataFrame(rows, "key binary, value binary"), broker.bootstrap, topic)
    frame = read_batch(spark, broker.bootstrap, topic)
    read = frame.select("key", "value", "topic", "offset", "partition", "timestampType").collect()
    assert sorted((bytes(row.key), bytes(row.value)) for row in read) == sorted(rows)
    assert {row.topic for row in read} == {topic}
    assert {row.timestampType for row in read} == {0}
    for partition in {row.partition for row in read}:
        offsets = sorted(row.offset for row in read if row.partition == partition)
        assert offsets == list(range(len(offsets)))


def test_headers_nulls_and_timestamps_pass(spark: SparkSession, broker: Broker, topic: str) -> None:
    schema = "key binary, value binary, headers array<struct<key: string, value: binary>>"
    rows = [(b"k", None, [("trace", b"\x00\xff"), ("trace", b""), ("none", None)]), (None, b"v", None)]
    write_batch(spark.createDataFrame(rows, schema), broker.bootstrap, topic)  # type: ignore[type-var]
    read = read_batch(spark, broker.bootstrap, topic).collect()
    by_key = {None if row.key is None else bytes(row.key): row for row in read}
    assert by_key.keys() == {b"k", None}
    assert by_key[b"k"].value is None
    headers = [(header.key, header.value and bytes(header.value)) for header in by_key[b"k"].headers]
    assert headers == [("trace", b"\x00\xff"), ("trace", bytearray()), ("none", None)]
    assert by_key[None].headers is None
    assert all(row.timestamp is not None for row in read)


def test_starting_and_ending_offsets_bound_what_is_read(spark: SparkSession, broker: Broker, topic: str) -> None:
    rows = [(str(i).encode(),) for i in range(100)]
    write_batch(spark.createDataFrame(rows, "value binary").coalesce(1), broker.bootstrap, topic)
    everything = read_batch(spark, broker.bootstrap, topic).collect()
    partitions = {row.partition for row in everything}
    partition = min(partitions)
    start = {str(p): (3 if p == partition else -1) for p in partitions}
    end = {str(p): (5 if p == partition else -1) for p in partitions}
    frame = read_batch(
        spark,
        broker.bootstrap,
        topic,
        startingOffsets=json.dumps({topic: start}),
        endingOffsets=json.dumps({topic: end}),
    )
    read = frame.collect()
    assert [(row.partition, row.offset) for row in read] == [(partition, 3), (partition, 4)]


def test_starting_timestamp_is_looked_up_by_the_broker(spark: SparkSession, broker: Broker, topic: str) -> None:
    write_batch(spark.createDataFrame([(b"old",)], "value binary"), broker.bootstrap, topic)
    first = read_batch(spark, broker.bootstrap, topic).selectExpr("unix_millis(timestamp) AS at").collect()[0]["at"]
    write_batch(spark.createDataFrame([(b"new",)], "value binary"), broker.bootstrap, topic)
    frame = read_batch(
        spark,
        broker.bootstrap,
        topic,
        startingTimestamp=str(first + 1),
        startingOffsetsByTimestampStrategy="latest",
    )
    assert [bytes(row.value) for row in frame.collect()] == [b"new"]
