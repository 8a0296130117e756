"""The groups in which a replay in transactions keeps its positions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.topics import create_topic, fill_topic
from pykbroker.spark.writing import Route, Transactions, WriteJob, transactional
from pykbroker.spark.writing.transactional import PartitionTransactions, take_over
from spark_compat.pipelines import archive_topics, replay_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_groups_are_deleted(
    spark: SparkSession, broker: Broker, topic: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """Where something was written, and where nothing was missing."""
    fill_topic(broker, topic, 2, 20)
    archive_topics(spark, broker, tmp_path, topic)
    back = unique("back")
    create_topic(broker, back, 2)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for records in (20, 0):
        assert replay_topic(spark, broker, tmp_path, topic, back, exactly_once=True).records == records
        groups = [each.group_id for each in admin.list_consumer_groups().result().valid]
        assert not [group for group in groups if group.startswith(f"pykbroker-replay-{back}-")]


def test_a_task_that_is_tried_again_ends_what_was_left_open(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task dies in the middle of a commit: its next try waits for no timeout of a transaction."""
    monkeypatch.setattr(transactional, "_PATIENCE_S", 60.0)
    create_topic(broker, topic, 1)
    group = f"positions-of-{topic}"
    route = Route("source-0", topic, 0, transactions=Transactions(group, group, topic, 0))
    job = WriteJob(broker.bootstrap, {0: route}, {"transaction.timeout.ms": "600000"}, "this run")
    take_over(job, route)
    first = Producer(job.producer_properties(route.transactions))
    tried = PartitionTransactions(first, job, route)
    tried.before(0)
    first.produce(topic, b"value", partition=0)
    first.send_offsets_to_transaction([TopicPartition(topic, 0, 1, "this run")], tried._group._metadata)
    again = PartitionTransactions(Producer(job.producer_properties(route.transactions)), job, route)
    assert again.next_offset == 0
    again.close()
    tried.close()
