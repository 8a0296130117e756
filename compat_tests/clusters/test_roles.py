"""Nodes of one role, of either kind: brokers find their controller on another node, and pass on what clients want."""

from __future__ import annotations

import time

import pytest

from compat_tests.clients import READERS, WRITERS, Message

from .conftest import NewCluster
from .layout import BROKER, CONTROLLER, KAFKA, PYKBROKER, NodeSpec
from .topics import create_replicated_topic

ROLES = {
    "pykbroker alone": (PYKBROKER, PYKBROKER, PYKBROKER),
    "under Apache Kafka's controller": (KAFKA, PYKBROKER, PYKBROKER),
    "under pykbroker's controller": (PYKBROKER, KAFKA, PYKBROKER),
}
VALUES = [Message(b"%d" % number) for number in range(100)]


def _nodes(controller: str, *brokers: str) -> list[NodeSpec]:
    return [NodeSpec(controller, CONTROLLER), *(NodeSpec(each, BROKER) for each in brokers)]


@pytest.mark.parametrize(
    "kinds",
    [pytest.param(kinds, id=name, marks=[pytest.mark.java] * (KAFKA in kinds)) for name, kinds in ROLES.items()],
)
def test_a_controller_and_its_brokers_are_a_cluster(new_cluster: NewCluster, kinds: tuple[str, str, str]) -> None:
    cluster = new_cluster(_nodes(*kinds))
    cluster.start()
    create_replicated_topic(cluster, "t", 2, replication_factor=2)
    cluster.wait_until_in_sync("t", 0)
    cluster.wait_until_in_sync("t", 1)
    WRITERS["confluent-kafka"](cluster.bootstrap, "t", VALUES, idempotent=True)
    assert len(READERS["confluent-kafka"](cluster.bootstrap, "t", 2, 100)) == 100


def test_a_killed_broker_is_fenced_long_before_its_session_is_over(new_cluster: NewCluster) -> None:
    session_s = 300
    times = {"broker.session.timeout.ms": str(1000 * session_s), "broker.heartbeat.interval.ms": "2000"}
    cluster = new_cluster(_nodes(PYKBROKER, PYKBROKER, PYKBROKER), times)
    cluster.start()
    create_replicated_topic(cluster, "t", replication_factor=2, configs={"min.insync.replicas": "1"})
    cluster.wait_until_in_sync("t")
    leader = cluster.leader("t")
    start = time.monotonic()
    cluster.kill(leader)
    cluster.wait_for("t", 0, lambda view: view.leader not in (leader, -1), "is led by another replica")
    assert time.monotonic() - start < session_s / 2
