"""The first records of a topic that was created a moment ago, in as many partitions as a job likes.

Every partition gets its first idempotent batches at once, from producers whose ids no leader has seen. A leader that
refused the first of them and took the second would leave the producer with a sequence out of order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.clusters.layout import PYKBROKER
from spark_compat.streams import read_batch, write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker
    from compat_tests.clusters.conftest import NewCluster

PARTITIONS = 24
RECORDS = 240_000
TOPICS = 4


def create_and_write_at_once(spark: SparkSession, bootstrap: str, names: list[str], replicas: int) -> None:
    frame = spark.range(0, RECORDS, 1, PARTITIONS).selectExpr(
        "CAST(id AS STRING) AS key",
        "RPAD(CAST(id AS STRING), 100, 'x') AS value",
        f"CAST(id % {PARTITIONS} AS INT) AS partition",
    )
    frame = frame.persist()
    frame.count()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for name in names:
        admin.create_topics([NewTopic(name, PARTITIONS, replicas)])[name].result()
        write_batch(frame, bootstrap, name)
    frame.unpersist()
    for name in names:
        read = read_batch(spark, bootstrap, name).groupBy("partition")
        counts = read.agg({"key": "count", "offset": "max"}).collect()
        assert {row["partition"]: (row["count(key)"], row["max(offset)"] + 1) for row in counts} == dict.fromkeys(
            range(PARTITIONS), (RECORDS // PARTITIONS,) * 2
        )


@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_one_node_takes_them(spark: SparkSession, broker: Broker, unique: Callable[[str], str]) -> None:
    create_and_write_at_once(spark, broker.bootstrap, [unique(f"topic{i}") for i in range(TOPICS)], 1)


def test_three_nodes_take_them(spark: SparkSession, new_cluster: NewCluster) -> None:
    cluster = new_cluster([PYKBROKER] * 3)
    cluster.start()
    create_and_write_at_once(spark, cluster.bootstrap, [f"first-writes-{i}" for i in range(TOPICS)], 3)
