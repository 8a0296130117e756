"""The groups in which a replay in transactions keeps its positions: none is left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from compat_tests.topics import create_topic, fill_topic
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
        assert not [group for group in groups if group.startswith("pykbroker-replay")]
