"""Mirrors that die anywhere, or go on where something else dies: each record is in the copy once, in its order."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.steady_producers import ConfluentProducer, finished
from compat_tests.topics import create_topic
from pykbroker.spark import Listener
from pykbroker.spark.errors import TakenOver
from spark_compat.mirrors import PREFIX, assert_copied, copied_fields, mirror_topics
from spark_compat.pipelines import spark_command
from spark_compat.processes import QueryProcess, pipeline_process
from spark_compat.streams import write_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker
    from compat_tests.conftest import FreshBroker

PARTITIONS = 4


def following(
    spark: SparkSession, source: Broker, target: Broker, log: Path, *options: str
) -> AbstractContextManager[QueryProcess]:
    """A run that goes on."""
    command = spark_command(
        spark, source.bootstrap, "mirror", "--target-bootstrap-server", target.bootstrap, "--topic", "source",
        "--prefix", PREFIX, "--follow", "--poll-interval", "0.1", "--max-batch-records", "400", *options,
    )  # fmt: skip
    return pipeline_process(command, log)


@pytest.mark.timeout(1800)
@pytest.mark.flaky(reruns=0)
def test_a_mirror_that_is_killed_with_its_brokers(
    spark: SparkSession, fresh_broker: FreshBroker, tmp_path: Path
) -> None:
    """kill -9 of an executor, of the target, of the source and of the driver; with writes going on."""
    source, target = fresh_broker(), fresh_broker()
    create_topic(source, "source", PARTITIONS)
    producer = ConfluentProducer(source, "source", PARTITIONS, pause_s=0.001)
    log = tmp_path / "mirror.log"
    with finished(producer), following(spark, source, target, log, "--master", "local-cluster[2,1,1024]") as process:
        process.await_batches(2)
        process.executors()[0].kill()
        process.await_batches(2)
        for broker in (target, source):
            broker.kill()
            broker.start()
            process.await_batches(2)
    mirror_topics(spark, source, target, "source")
    assert_copied(spark, source, target, "source")
    copied = {
        int(value) for rows in copied_fields(spark, target, f"{PREFIX}source").values() for _, _, value, _ in rows
    }
    assert set(producer.acknowledged) <= copied


def test_two_mirrors_at_once(spark: SparkSession, broker: Broker, topic: str) -> None:
    """The later one takes over, the earlier one is told so, and nothing is there twice."""
    create_topic(broker, topic, PARTITIONS)
    write_numbers(spark, broker.bootstrap, topic, range(2000))
    begun = threading.Event()
    failures: list[BaseException] = []

    def first() -> None:
        listener = Listener(progress=lambda progress: begun.set())
        try:
            mirror_topics(spark, broker, broker, topic, listener=listener, max_batch_records=20)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(60)
    second = mirror_topics(spark, broker, broker, topic)
    thread.join()
    assert [type(error) for error in failures] == [TakenOver]
    assert 0 < second.records < 2000
    assert_copied(spark, broker, broker, topic)
