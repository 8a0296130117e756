"""`pykbroker.spark.lag`: what queries have read, by the checkpoints that stock Spark writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from compat_tests.topics import create_topic, fill_topic
from pykbroker.spark import LagOptions, LagReport, PartitionLag, Source, lag
from pykbroker.spark.directories import HadoopDirectory
from pykbroker.spark.errors import BadOptions, ClusterUnavailable
from pykbroker.spark.lagging import LocalDirectory, read_checkpoint
from spark_compat.mirrors import committed, delete_records, delete_topic, produce
from spark_compat.pipelines import run_command
from spark_compat.streams import numbers_to_the_end, read_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker


def lag_of(broker: Broker, checkpoint: Path, commit_to: str | None = None, *, dry_run: bool = False) -> LagReport:
    return lag(LagOptions(Source(broker.bootstrap), [str(checkpoint)], commit_to=commit_to, dry_run=dry_run))


def test_what_a_query_has_read(
    spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """Beside the ends of its topic; then a group has the same offsets."""
    fill_topic(broker, topic, 2, 20)
    stream = read_stream(spark, broker.bootstrap, topic)
    assert numbers_to_the_end(stream, tmp_path) == list(range(20))
    report = lag_of(broker, tmp_path)
    assert report.queries[0].partitions == [PartitionLag(topic, 0, 10, 10), PartitionLag(topic, 1, 10, 10)]
    assert (report.queries[0].batch, report.queries[0].planned, report.queries[0].lag) == (0, None, 0)
    produce(broker, topic, b"20", b"21", b"22", partition=1)
    group = unique("group")
    report = lag_of(broker, tmp_path, group, dry_run=True)
    assert (report.committed, report.to_commit) == (0, 2)
    assert committed(broker, group, topic, 2) == [-1001, -1001]
    report = lag_of(broker, tmp_path, group)
    assert [row.lag for row in report.queries[0].partitions] == [0, 3]
    assert (report.committed, report.problems) == (2, [])
    assert committed(broker, group, topic, 2) == [10, 10]
    assert numbers_to_the_end(stream, tmp_path) == [20, 21, 22]
    assert lag_of(broker, tmp_path, group).queries[0].lag == 0
    assert committed(broker, group, topic, 2) == [10, 13]
    read = read_checkpoint(str(tmp_path), LocalDirectory(str(tmp_path)))
    assert read_checkpoint(str(tmp_path), HadoopDirectory(spark, str(tmp_path))) == read


def test_a_group_with_members_is_left_alone(
    spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    fill_topic(broker, topic, 1, 3)
    numbers_to_the_end(read_stream(spark, broker.bootstrap, topic), tmp_path)
    group = unique("group")
    member = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    member.subscribe([topic])
    try:
        assert member.poll(30) is not None
        for dry_run in (False, True):
            with pytest.raises(BadOptions, match="has members"):
                lag_of(broker, tmp_path, group, dry_run=dry_run)
    finally:
        member.close()
    assert committed(broker, group, topic, 1) == [-1001]


def test_what_is_not_there_any_more(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    fill_topic(broker, topic, 1, 5)
    numbers_to_the_end(read_stream(spark, broker.bootstrap, topic), tmp_path)
    produce(broker, topic, *(b"%d" % i for i in range(5)))
    delete_records(broker, topic, 8)
    report = lag_of(broker, tmp_path)
    assert report.problems == [f"{topic}-0 begins at offset 8: 3 offsets were deleted before they were read"]
    delete_topic(broker, topic)
    assert lag_of(broker, tmp_path).problems == [f"{topic}-0 is not there any more"]
    create_topic(broker, topic, 1)
    (problem,) = lag_of(broker, tmp_path).problems
    assert problem.startswith(f"{topic}-0 ends at offset 0, and the query has read up to 5")


def test_the_command(
    spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    fill_topic(broker, topic, 1, 4)
    checkpoint, group = tmp_path / "checkpoint", unique("group")
    numbers_to_the_end(read_stream(spark, broker.bootstrap, topic), checkpoint)
    produce(broker, topic, b"4")
    asked = ["lag", "--checkpoint", str(checkpoint), "--commit-to", group]
    planned = run_command(spark, broker, *asked, "--dry-run")
    assert planned.stdout.splitlines()[-1] == f"Would commit 1 offsets to the group {group}."
    assert committed(broker, group, topic, 1) == [-1001]
    done = run_command(spark, broker, *asked)
    assert done.returncode == 0, done.stderr
    title, header, row, last = done.stdout.splitlines()
    assert title.startswith(f"{checkpoint}: query ")
    assert "batch 0 of 20" in title
    assert title.endswith(", 1 offsets behind")
    assert header.split() == ["TOPIC", "PARTITION", "READ-OFFSET", "LOG-END-OFFSET", "LAG"]
    assert row.split() == [topic, "0", "4", "5", "1"]
    assert last == f"Committed 1 offsets to the group {group}."
    delete_records(broker, topic, 5)
    found = run_command(spark, broker, "lag", "--checkpoint", f"file://{checkpoint}", "--json")
    assert found.returncode == 3
    (query,) = json.loads(found.stdout)["queries"]
    assert query["partitions"][0]["problem"].startswith(f"{topic}-0 begins at offset 5")
    assert (query["lag"], query["partitions"][0]["lag"]) == (1, 1)
    nowhere = run_command(spark, broker, "lag", "--checkpoint", str(tmp_path / "nowhere"))
    assert nowhere.returncode == 1
    assert "is no checkpoint of a query" in nowhere.stderr


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "commits").mkdir()
    (tmp_path / "metadata").write_text('{"id":"a"}')
    (tmp_path / "offsets/0").write_text('v1\n{"batchTimestampMs":1}\n{"a":{"0":1}}')
    (tmp_path / "commits/0").write_text("v1\n{}")
    with pytest.raises(ClusterUnavailable):
        lag(LagOptions(Source("127.0.0.1:1"), [str(tmp_path)]))
