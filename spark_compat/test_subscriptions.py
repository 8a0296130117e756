"""Which topics and partitions a query reads: subscribe, subscribePattern, assign; groups that it is in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaAdminClient

from compat_tests.topics import fill_topic
from spark_compat.streams import (
    await_rows,
    batches_to_the_end,
    numbers,
    numbers_to_the_end,
    read_batch,
    read_stream,
    running,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker

DEPRECATED_OFFSET_FETCHING = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"


@pytest.fixture
def two_topics(broker: Broker, unique: Callable[[str], str]) -> tuple[str, str]:
    """With 20 and 30 numbers in two partitions each."""
    first, second = unique("first"), unique("second")
    fill_topic(broker, first, 2, 20)
    fill_topic(broker, second, 2, 30)
    return first, second


def test_subscribe_takes_several_topics(spark: SparkSession, broker: Broker, two_topics: tuple[str, str]) -> None:
    frame = read_batch(spark, broker.bootstrap, ",".join(two_topics))
    counts = {row["topic"]: row["count"] for row in frame.groupBy("topic").count().collect()}
    assert counts == {two_topics[0]: 20, two_topics[1]: 30}


def test_a_pattern_takes_the_topics_whose_names_match(
    spark: SparkSession, broker: Broker, two_topics: tuple[str, str], tmp_path: Path
) -> None:
    pattern = re.escape(two_topics[0]).replace("first", "(first|third)")
    assert numbers(read_batch(spark, broker.bootstrap, subscribePattern=pattern)) == list(range(20))
    stream = read_stream(spark, broker.bootstrap, subscribePattern=pattern)
    assert numbers_to_the_end(stream, tmp_path / "checkpoint") == list(range(20))


def test_assign_takes_partitions(
    spark: SparkSession, broker: Broker, two_topics: tuple[str, str], tmp_path: Path
) -> None:
    first, second = two_topics
    assign = json.dumps({first: [1], second: [0, 1]})
    frame = read_batch(spark, broker.bootstrap, assign=assign)
    assert {(row["topic"], row["partition"]) for row in frame.select("topic", "partition").distinct().collect()} == {
        (first, 1),
        (second, 0),
        (second, 1),
    }
    assert frame.count() == 40
    counts = batches_to_the_end(
        read_stream(spark, broker.bootstrap, assign=assign), tmp_path / "checkpoint", lambda each: each.count()
    )
    assert sum(counts) == 40


def test_a_topic_that_matches_later_is_read_as_well(
    spark: SparkSession, broker: Broker, two_topics: tuple[str, str], table: str
) -> None:
    first, _ = two_topics
    later = first.replace("first", "third")
    pattern = re.escape(first).replace("first", "(first|third)")
    options = {"subscribePattern": pattern, "kafka.metadata.max.age.ms": "500"}
    stream = read_stream(spark, broker.bootstrap, **options)
    with running(stream.writeStream.format("memory").queryName(table)) as query:
        query.processAllAvailable()
        fill_topic(broker, later, 1, 7)
        await_rows(spark, query, 27)
    assert spark.table(table).where(f"topic = '{later}'").count() == 7


@pytest.mark.parametrize("option", ["groupIdPrefix", "kafka.group.id"])
def test_a_query_that_fetches_offsets_the_old_way_is_in_a_group(
    option: str, spark: SparkSession, broker: Broker, two_topics: tuple[str, str], unique: Callable[[str], str]
) -> None:
    """Its driver subscribes. Without that option of the session no group is ever joined, whatever its name."""
    group = unique("group")
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)

    def groups() -> list[str]:
        return [each["group_id"] for each in admin.list_groups() if each["group_id"].startswith(group)]

    assert read_batch(spark, broker.bootstrap, two_topics[0], **{option: group}).count() == 20
    assert groups() == []
    spark.conf.set(DEPRECATED_OFFSET_FETCHING, "true")
    try:
        stream = read_stream(spark, broker.bootstrap, two_topics[0], **{option: group})
        with running(stream.writeStream.format("noop")) as query:
            query.processAllAvailable()
            joined = groups()
    finally:
        spark.conf.unset(DEPRECATED_OFFSET_FETCHING)
        admin.close()
    assert len(joined) == 1
    assert (joined == [group]) == (option == "kafka.group.id")
