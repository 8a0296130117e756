"""Apache Kafka's tools read what the nodes of a cluster leave on their disks, after leaders were killed at work."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.apache_kafka.dump_log_segments import find_complaints
from compat_tests.apache_kafka.metadata_shell import paths_in_snapshot
from compat_tests.steady_producers import ConfluentProducer, finished
from compat_tests.waiting import until

from .cluster import Cluster
from .conftest import NewCluster
from .layout import PYKBROKER
from .steady_transactions import SteadyTransactions
from .topics import create_replicated_topic

PLAIN, ORDERS = "plain", "orders"
SHORT_LOG = {"metadata.log.max.record.bytes.between.snapshots": "2000", "internal.metadata.log.segment.bytes": "3000"}
AT_EACH_STEP = 20


@pytest.mark.java
@pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "dynamic"])
def test_kafkas_tools_read_the_files_of_every_node(new_cluster: NewCluster, is_dynamic: bool) -> None:
    """With `static` and with `dynamic` voters."""
    cluster = new_cluster([PYKBROKER] * 3, SHORT_LOG, is_dynamic=is_dynamic)
    cluster.start()
    create_replicated_topic(
        cluster, PLAIN, configs={"segment.ms": "1000", "index.interval.bytes": "300", "retention.ms": "123456789000"}
    )
    create_replicated_topic(cluster, ORDERS)
    kill_each_at_work(cluster)
    for topic in cluster.view().topics:
        for partition in range(len(cluster.view(topic).topics[topic])):
            cluster.wait_until_in_sync(topic, partition)
    cluster.stop()

    data = [node.data_directory for node in cluster.nodes.values()]
    assert find_complaints(data) == []
    for each in data:
        lines = paths_in_snapshot(latest_snapshot(each))
        assert f"/image/topics/byName/{PLAIN}/0" in lines
        assert f"/image/configs/TOPIC:{PLAIN}/retention.ms" in lines
        brokers = {f"/image/cluster/brokers/{node_id}" for node_id in cluster.nodes}
        assert brokers <= set(lines), lines
        assert "/image/topics/byName/__transaction_state" in lines


def kill_each_at_work(cluster: Cluster) -> None:
    plain = ConfluentProducer(cluster, PLAIN, 1, pause_s=0.001, in_flight=1)
    transactions = SteadyTransactions(cluster, ORDERS, 1, ORDERS)
    with finished(plain, transactions):
        for node_id in cluster.nodes:
            wait_for_more(plain, transactions)
            cluster.kill(node_id)
            wait_for_more(plain, transactions)
            cluster.start(node_id)


def wait_for_more(plain: ConfluentProducer, transactions: SteadyTransactions) -> None:
    sent, committed = len(plain.acknowledged), len(transactions.committed)
    until(lambda: len(plain.acknowledged) > sent + 10 * AT_EACH_STEP, "the producer goes on")
    until(lambda: len(transactions.committed) > committed + AT_EACH_STEP, "the transactions go on")


def latest_snapshot(data: Path) -> Path:
    return max((data / "__cluster_metadata-0").glob("*.checkpoint"))
