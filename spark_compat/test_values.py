"""What a record may hold, in both directions, and the columns and options of the sink."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import CODECS, Message, read_with_confluent, write_with_confluent
from compat_tests.topics import create_topic
from spark_compat.streams import numbers, read_batch, values, write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker


def as_bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


MEGABYTE = bytes(range(256)) * 4096


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read_and_written(codec: str, spark: SparkSession, broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 1)
    write_with_confluent(broker.bootstrap, topic, [Message(b"%d" % i) for i in range(1000)], codec=codec)
    assert numbers(read_batch(spark, broker.bootstrap, topic)) == list(range(1000))
    frame = spark.range(1000, 2000).selectExpr("CAST(id AS STRING) AS value").coalesce(1)
    write_batch(frame, broker.bootstrap, topic, **{"kafka.compression.type": codec})
    read = read_with_confluent(broker.bootstrap, topic, 1, 2000)
    assert [stored.message.value for stored in read] == [b"%d" % i for i in range(2000)]


def test_null_empty_and_binary_values_come_back(spark: SparkSession, broker: Broker, topic: str) -> None:
    everything = bytes(range(256))
    create_topic(broker, topic, 1)
    rows = [(None, None), (b"", b""), (everything, everything[::-1]), (None, b"value"), (b"key", None)]
    write_batch(spark.createDataFrame(rows, "key binary, value binary").coalesce(1), broker.bootstrap, topic)
    read = read_batch(spark, broker.bootstrap, topic).select("key", "value").collect()
    assert [(as_bytes(row.key), as_bytes(row.value)) for row in read] == rows


def test_a_megabyte_comes_back(spark: SparkSession, broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 1, {"max.message.bytes": "2097152"})
    frame = spark.createDataFrame([(MEGABYTE,), (MEGABYTE[::-1],)], "value binary").coalesce(1)
    write_batch(frame, broker.bootstrap, topic, **{"kafka.max.request.size": "2097152"})
    read = read_batch(spark, broker.bootstrap, topic).selectExpr("sha2(value, 256) AS digest", "length(value) AS size")
    digests = [hashlib.sha256(each).hexdigest() for each in (MEGABYTE, MEGABYTE[::-1])]
    assert sorted((row.digest, row.size) for row in read.collect()) == sorted((each, len(MEGABYTE)) for each in digests)


def test_a_record_that_is_too_large_fails_the_job(spark: SparkSession, broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 1)
    frame = spark.createDataFrame([(MEGABYTE,), (MEGABYTE,)], "value binary").coalesce(1)
    with pytest.raises(Exception, match="RecordTooLargeException"):
        write_batch(frame, broker.bootstrap, topic, **{"kafka.max.request.size": "4194304"})
    assert values(read_batch(spark, broker.bootstrap, topic)) == []


def test_the_topic_column_says_where_each_record_goes(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    first, second, wins = unique("first"), unique("second"), unique("wins")
    for name in (first, second, wins):
        create_topic(broker, name, 1)
    frame = spark.createDataFrame([(first, "1"), (second, "2"), (first, "3")], "topic string, value string")
    write_batch(frame, broker.bootstrap)
    assert numbers(read_batch(spark, broker.bootstrap, first)) == [1, 3]
    assert numbers(read_batch(spark, broker.bootstrap, second)) == [2]
    write_batch(frame, broker.bootstrap, wins)
    assert numbers(read_batch(spark, broker.bootstrap, wins)) == [1, 2, 3], "the option wins over the column"


def test_the_partition_column_says_where_each_record_goes(spark: SparkSession, broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 3)
    rows = [(2, "a", "1"), (0, "a", "2"), (2, "b", "3"), (None, "a", "4"), (None, "a", "5")]
    write_batch(spark.createDataFrame(rows, "partition int, key string, value string"), broker.bootstrap, topic)
    read = read_batch(spark, broker.bootstrap, topic).selectExpr("partition", "INT(CAST(value AS STRING)) AS number")
    found = {row["number"]: row["partition"] for row in read.collect()}
    assert (found[1], found[2], found[3]) == (2, 0, 2)
    assert found[4] == found[5], "by the key, where it is null"
    with pytest.raises(Exception, match="partition"):
        write_batch(
            spark.createDataFrame([(7, "6")], "partition int, value string"),
            broker.bootstrap,
            topic,
            **{"kafka.max.block.ms": "2000"},
        )


def test_headers_are_there_where_they_are_asked_for(spark: SparkSession, broker: Broker, topic: str) -> None:
    create_topic(broker, topic, 1)
    headers = (("a", b"1"), ("b", None), ("a", b"2"), ("empty", b""))
    write_with_confluent(broker.bootstrap, topic, [Message(b"value", headers=headers)])
    read = read_batch(spark, broker.bootstrap, topic)
    [row] = read.collect()
    assert tuple((each.key, as_bytes(each.value)) for each in row.headers) == headers
    assert "headers" not in read_batch(spark, broker.bootstrap, topic, includeHeaders="false").columns
    write_batch(read.select("value", "headers"), broker.bootstrap, topic)
    write_batch(read.limit(1).select("value", "headers"), broker.bootstrap, topic, includeHeaders="false")
    kept = [stored.message.headers for stored in read_with_confluent(broker.bootstrap, topic, 1, 3)]
    assert kept == [headers, headers, headers], "the sink writes the column whatever that option says"
