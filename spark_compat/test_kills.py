"""kill -9 of a query, of its broker, and of one of three brokers, while records are written: nothing lost, none twice.

Spark's file sink is exactly once, its Kafka sink at least once: a task that is repeated writes again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.clusters.topics import create_replicated_topic
from compat_tests.steady_producers import ConfluentProducer, Places, finished
from compat_tests.topics import create_topic
from spark_compat.copy_program import copy_writer
from spark_compat.processes import QueryProcess
from spark_compat.session import connector_jars
from spark_compat.streams import numbers, read_batch, run_to_the_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker
    from compat_tests.clusters.conftest import NewCluster
    from compat_tests.conftest import FreshBroker

PARTITIONS = 4


@dataclass(frozen=True)
class Copy:
    """A query from a topic into files or to another topic, which processes run and kill, and the last run ends."""

    spark: SparkSession
    bootstrap: str
    source: str
    directory: Path
    sink: str | None = None

    @contextmanager
    def in_a_process(self) -> Iterator[QueryProcess]:
        """Killed at the end of the block."""
        self.directory.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "spark_compat.copy_program", connector_jars(self.spark), *self._arguments()]
        process = QueryProcess(command, self.directory / "query.log")
        try:
            yield process
        finally:
            process.kill()

    def to_the_end(self) -> None:
        """Reads in this process what is left."""
        run_to_the_end(copy_writer(self.spark, *self._arguments()))

    def _arguments(self) -> list[str]:
        arguments = [self.bootstrap, self.source, str(self.directory)]
        return arguments if self.sink is None else [*arguments, self.sink]

    def assert_each_once(self, acknowledged: Places) -> None:
        files = self.spark.read.parquet(str(self.directory / "records"))
        rows = files.selectExpr("INT(CAST(value AS STRING)) AS number", "partition", "offset").collect()
        read = {(row["partition"], row["offset"]): row["number"] for row in rows}
        assert len(rows) == len(read), "a record is there twice"
        missing = [number for number, place in acknowledged.items() if read.get(place) != number]
        assert not missing, f"{len(missing)} of {len(acknowledged)} are not there, such as {missing[:5]}"


def test_a_query_that_is_killed_resumes_from_its_checkpoint(
    spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    create_topic(broker, topic, PARTITIONS)
    sink = unique("sink")
    create_topic(broker, sink, PARTITIONS)
    into_files = Copy(spark, broker.bootstrap, topic, tmp_path / "files")
    to_a_topic = Copy(spark, broker.bootstrap, topic, tmp_path / "copies", sink)
    producer = ConfluentProducer(broker, topic, PARTITIONS, pause_s=0.001)
    with finished(producer):
        for copy in (into_files, into_files, to_a_topic):
            with copy.in_a_process() as process:
                process.await_batches(3)
    into_files.to_the_end()
    into_files.assert_each_once(producer.acknowledged)
    to_a_topic.to_the_end()
    assert set(numbers(read_batch(spark, broker.bootstrap, sink))) == set(producer.acknowledged)


def test_a_query_goes_on_when_its_broker_is_back(
    spark: SparkSession, fresh_broker: FreshBroker, tmp_path: Path
) -> None:
    """The broker is killed twice in the middle of the query, which is not started again."""
    broker = fresh_broker()
    create_topic(broker, "source", PARTITIONS)
    copy = Copy(spark, broker.bootstrap, "source", tmp_path)
    producer = ConfluentProducer(broker, "source", PARTITIONS, pause_s=0.001)
    with finished(producer), copy.in_a_process() as process:
        for _ in range(2):
            process.await_batches(2)
            broker.kill()
            broker.start()
        process.await_batches(2)
    copy.to_the_end()
    copy.assert_each_once(producer.acknowledged)


def test_a_query_goes_on_while_one_of_three_brokers_is_killed(
    cluster_kind: str, new_cluster: NewCluster, spark: SparkSession, tmp_path: Path
) -> None:
    cluster = new_cluster([cluster_kind] * 3)
    cluster.start()
    create_replicated_topic(cluster, "source", PARTITIONS)
    copy = Copy(spark, cluster.bootstrap, "source", tmp_path)
    producer = ConfluentProducer(cluster, "source", PARTITIONS, pause_s=0.001, in_flight=1)
    with finished(producer), copy.in_a_process() as process:
        process.await_batches(2)
        victim = cluster.leader("source", 0)
        cluster.kill(victim)
        process.await_batches(2)
        cluster.start(victim)
        process.await_batches(2)
    copy.to_the_end()
    copy.assert_each_once(producer.acknowledged)
