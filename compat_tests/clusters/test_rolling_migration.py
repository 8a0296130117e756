"""A cluster of Apache Kafka becomes one of pykbroker, and again one of Apache Kafka, node by node and at work.

Each node is stopped, and the other program is started on the very same directories and properties. Clients that were
there before the first node changed are the same ones after the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from compat_tests.members import Member
from compat_tests.steady_producers import ConfluentProducer, JavaProducer, assert_stored, finished
from compat_tests.waiting import until

from .belongings import BROKER, TOPIC, belongings, commit, set_config
from .cluster import Cluster
from .conftest import NewCluster
from .layout import KAFKA, PYKBROKER
from .steady_transactions import SteadyTransactions
from .test_mixed_quorum import voters
from .topics import create_replicated_topic

pytestmark = pytest.mark.flaky(reruns=0)

PLAIN, OF_JAVA, ORDERS = "plain", "of-java", "orders"
PARTITIONS = 3
GROUPS: dict[str, dict[str, Any]] = {"classic": {}, "newer": {"group_protocol": "consumer"}}
AT_EACH_STEP = 30
WORK_DEADLINE_S = 240.0


class Clients:
    """All that are at work, and how far each is."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.plain = ConfluentProducer(cluster, PLAIN, PARTITIONS, pause_s=0.01, in_flight=1)
        self.java = JavaProducer(cluster, OF_JAVA, directory, records_per_second=50)
        self.transactions = SteadyTransactions(cluster, ORDERS, 2, "orders")
        settings = {"auto_commit_interval_ms": 500, "metadata_recovery_strategy": "none"}
        self.members = {
            group: [Member(cluster, group, PLAIN, **settings, **own) for _ in range(2)] for group, own in GROUPS.items()
        }

    def finish(self) -> None:
        self.plain.finish()
        self.java.finish()
        self.transactions.finish()

    def read_by(self, group: str) -> set[int]:
        return {int(value) for member in self.members[group] for value in list(member.values)}

    def wait_for_more(self) -> None:
        """Each of them gets something done."""
        progress: dict[str, Callable[[], int]] = {
            "librdkafka's producer": lambda: len(self.plain.acknowledged),
            "Java's producer": lambda: len(self.java.acknowledged),
            "the transactional producer": lambda: len(self.transactions.committed),
            **{f"group {group}": lambda group=group: len(self.read_by(group)) for group in GROUPS},  # type: ignore[misc]
        }
        enough = {name: count() + AT_EACH_STEP for name, count in progress.items()}
        for name, count in progress.items():
            until(lambda: count() >= enough[name], f"{name} goes on", WORK_DEADLINE_S)  # noqa: B023


@pytest.mark.java
@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_dynamic", [False, True], ids=["static", "dynamic"])
def test_a_cluster_changes_its_kind_and_back_at_work(new_cluster: NewCluster, tmp_path: Path, is_dynamic: bool) -> None:
    """With `static` and with `dynamic` voters."""
    cluster = new_cluster([KAFKA] * 3, is_dynamic=is_dynamic)
    cluster.start()
    create_replicated_topic(cluster, PLAIN, PARTITIONS, configs={"retention.ms": "123456789000"})
    create_replicated_topic(cluster, OF_JAVA, PARTITIONS)
    create_replicated_topic(cluster, ORDERS, 2)
    set_config(cluster, BROKER, "2", "log.cleaner.threads", "2")
    commit(cluster, "of-old", PLAIN, 7, "before all of it")
    clients = Clients(cluster, tmp_path)
    with finished(clients.plain, clients.java, clients.transactions):
        clients.wait_for_more()
        change_all(cluster, PYKBROKER, clients, [PLAIN, OF_JAVA, ORDERS])
        create_replicated_topic(cluster, "of-pykbroker", 2, configs={"max.message.bytes": "900000"})
        set_config(cluster, TOPIC, PLAIN, "retention.ms", "234567890000")
        commit(cluster, "of-old", PLAIN, 8, "under pykbroker")
        change_all(cluster, KAFKA, clients, [PLAIN, OF_JAVA, ORDERS, "of-pykbroker"])

    stored = assert_stored(cluster, PLAIN, PARTITIONS, clients.plain.acknowledged, "librdkafka's producer")
    assert_stored(cluster, OF_JAVA, PARTITIONS, clients.java.acknowledged, "Java's producer")
    clients.transactions.assert_whole()
    for group, members in clients.members.items():
        until(lambda: clients.read_by(group) == set(stored), f"group {group} has read all", WORK_DEADLINE_S)  # noqa: B023
        until(lambda: committed(cluster, group) == len(stored), f"group {group} commits it", WORK_DEADLINE_S)  # noqa: B023
        for member in members:
            member.leave()


def change_all(cluster: Cluster, kind: str, clients: Clients, topics: Sequence[str]) -> None:
    """Node by node, each when all replicas are in sync again and all clients have gone on."""
    before = belongings(cluster, topics, ["of-old"])
    for node_id in cluster.nodes:
        cluster.stop(node_id)
        cluster.change_kind(node_id, kind)
        cluster.start(node_id)
        for topic, partitions in cluster.view().topics.items():
            for partition in partitions:
                cluster.wait_until_in_sync(topic, partition)
        clients.wait_for_more()
    until(lambda: voters(cluster) == set(cluster.nodes), "all vote")
    assert belongings(cluster, topics, ["of-old"]) == before


def committed(cluster: Cluster, group: str) -> int:
    """In all partitions together."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    try:
        told = consumer.committed([TopicPartition(PLAIN, partition) for partition in range(PARTITIONS)], timeout=30)
        return sum(max(each.offset, 0) for each in told)
    finally:
        consumer.close()
