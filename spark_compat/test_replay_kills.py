"""Replays that die anywhere, or go on where something else dies: each record is there, and in transactions once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.topics import create_topic
from pykbroker.spark import Listener
from pykbroker.spark.errors import TakenOver
from spark_compat.pipelines import archive_topics, audit_replay, replay_topic, spark_command
from spark_compat.processes import QueryProcess, pipeline_process
from spark_compat.streams import write_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker
    from compat_tests.conftest import FreshBroker

PARTITIONS = 4
RECORDS = 4000


def replaying(
    spark: SparkSession, broker: Broker, path: Path, to_topic: str, *options: str
) -> AbstractContextManager[QueryProcess]:
    command = spark_command(
        spark, broker.bootstrap, "replay", "--archive", str(path), "--topic", "source", "--to-topic", to_topic,
        "--max-batch-records", "250", *options,
    )  # fmt: skip
    return pipeline_process(command, path.with_suffix(".log"))


@pytest.mark.timeout(1800)
@pytest.mark.flaky(reruns=0)
def test_runs_that_are_killed_with_their_broker(spark: SparkSession, fresh_broker: FreshBroker, tmp_path: Path) -> None:
    """kill -9 of an executor, of the broker below a run, and of the driver in the middle of a batch."""
    broker = fresh_broker()
    path = tmp_path / "archive"
    create_topic(broker, "source", PARTITIONS)
    write_numbers(spark, broker.bootstrap, "source", range(RECORDS))
    archive_topics(spark, broker, path, "source")
    cluster = ("--master", "local-cluster[2,1,1024]", "--rate", "400")
    for exactly_once in (False, True):
        to_topic = f"exactly-once-{exactly_once}"
        create_topic(broker, to_topic, PARTITIONS)
        options = ("--exactly-once",) if exactly_once else ()
        with replaying(spark, broker, path, to_topic, *cluster, *options) as process:
            process.await_batches(2)
            process.executors()[0].kill()
            process.await_batches(2)
            if exactly_once:
                broker.kill()
                broker.start()
                process.await_batches(2)
        summary = replay_topic(spark, broker, path, "source", to_topic, exactly_once=exactly_once)
        assert summary.there >= 500
        assert summary.there + summary.records == RECORDS
        report = audit_replay(spark, broker, path, "source", to_topic)
        assert report.equal, report.problems
        if exactly_once:
            assert report.problems == []


def test_two_runs_at_once(
    spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """In transactions the later one takes over; the earlier one is told so, and nothing is there twice."""
    create_topic(broker, topic, PARTITIONS)
    write_numbers(spark, broker.bootstrap, topic, range(2000))
    archive_topics(spark, broker, tmp_path, topic)
    back = unique("back")
    create_topic(broker, back, PARTITIONS)
    begun = threading.Event()
    failures: list[BaseException] = []

    def first() -> None:
        try:
            replay_topic(
                spark, broker, tmp_path, topic, back, Listener(progress=lambda progress: begun.set()),
                exactly_once=True, rate=400.0, max_batch_records=200,
            )  # fmt: skip
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(60)
    second = replay_topic(spark, broker, tmp_path, topic, back, exactly_once=True)
    thread.join()
    assert [type(error) for error in failures] == [TakenOver], failures
    assert "Another run writes the same records" in str(failures[0])
    assert second.there + second.records == 2000
    assert audit_replay(spark, broker, tmp_path, topic, back).problems == []
