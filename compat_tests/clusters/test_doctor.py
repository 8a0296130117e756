"""A cluster that has lost brokers: what `pykbroker doctor` says of its partitions, brokers and controllers."""

from __future__ import annotations

from pathlib import Path

from compat_tests.answers import TestAnswers
from compat_tests.doctor.examined import examine
from compat_tests.waiting import until

from .cluster import Cluster
from .conftest import NewCluster
from .topics import create_replicated_topic

STAYS, LOST, GONE = 1, 2, 3
SHORT_SESSIONS = {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "1000"}


def test_a_cluster_loses_one_node_after_the_other(
    new_cluster: NewCluster, cluster_kind: str, answers: TestAnswers, tmp_path: Path
) -> None:
    """With one of three gone, partitions suffer; with two gone, nobody decides any more."""
    cluster = new_cluster([cluster_kind] * 3, properties=SHORT_SESSIONS)
    cluster.start()
    _create_topics(cluster)
    healthy = examine(cluster.bootstrap, tmp_path)
    answers.same("whole", [healthy.code, healthy.ids])
    assert (healthy.code, healthy.ids) == (2, ["single-replica"])

    cluster.kill(GONE)
    cluster.wait_for("alone", 0, lambda view: view.leader == -1, "is offline")
    cluster.wait_for("plain", 0, lambda view: GONE not in view.isr, "has lost a replica")
    found = examine(cluster.nodes[STAYS].bootstrap, tmp_path)
    answers.same("one gone", [found.code, found.ids])
    assert (found.code, found.ids) == (
        1,
        [
            "broker-fenced",
            "partition-offline",
            "partition-under-min-isr",
            "partition-under-replicated",
            "single-replica",
        ],
    )
    assert found.finding("partition-offline")["seen"] == "no leader: alone-0"
    assert found.finding("partition-under-min-isr")["seen"].endswith(": careful-0")
    assert found.finding("partition-under-min-isr")["advice"].endswith(f"missing: {GONE}.")
    assert found.finding("broker-fenced")["subject"] == f"broker {GONE}"

    cluster.kill(LOST)
    bootstrap = cluster.nodes[STAYS].bootstrap
    until(
        lambda: "no-controller" in examine(bootstrap, tmp_path, watch_s=0).errors,
        "the doctor says that there is no active controller",
    )


def _create_topics(cluster: Cluster) -> None:
    create_replicated_topic(cluster, "alone", assignment=[[GONE]], configs={"min.insync.replicas": "1"})
    create_replicated_topic(cluster, "careful", assignment=[[STAYS, GONE]], configs={"min.insync.replicas": "2"})
    create_replicated_topic(cluster, "plain")
