"""Nodes that do not belong to a cluster, and are configured for it: they end with one line, and the cluster goes on."""

from __future__ import annotations

from .conftest import NewCluster
from .intruders import assert_unharmed, refusal
from .layout import BROKER, PYKBROKER, NodeSpec
from .nodes import Formatting
from .topics import create_replicated_topic

FOREIGN = "AAAAAAAAAAAAAAAAAAAAAQ"


def test_nodes_of_another_cluster_end_and_name_both(new_cluster: NewCluster) -> None:
    """A voter, a broker that asks the voters, and one that asks bootstrap servers."""
    cluster = new_cluster([PYKBROKER] * 3)
    cluster.start(1, 2)
    create_replicated_topic(cluster, "t", replication_factor=2)
    servers = ",".join(each.controller_endpoint for each in cluster.members)
    by_servers = {"controller.quorum.voters": "", "controller.quorum.bootstrap.servers": servers}
    voter = cluster.nodes[3]
    broker = cluster.nodes[cluster.add(NodeSpec(PYKBROKER, BROKER))]
    asking_servers = cluster.nodes[cluster.add(NodeSpec(PYKBROKER, BROKER, by_servers))]
    for node in (voter, broker, asking_servers):
        node.formatting = Formatting(FOREIGN)
        line = refusal(node)
        assert f"this node is of the cluster {FOREIGN}, and " in line
        assert f"is of the cluster {cluster.cluster_id}" in line
    assert_unharmed(cluster, "t", 1, 2)


def test_a_second_process_with_the_id_of_a_broker_ends_and_the_first_one_stays(new_cluster: NewCluster) -> None:
    sessions = {"broker.session.timeout.ms": "120000"}  # a first process that is slow is there, too
    cluster = new_cluster([PYKBROKER, NodeSpec(PYKBROKER, BROKER)], sessions)
    cluster.start(1, 2)
    create_replicated_topic(cluster, "t", replication_factor=2)
    taken = {"node.id": "2", "initial.broker.registration.timeout.ms": "1000"}
    twin = cluster.nodes[cluster.add(NodeSpec(PYKBROKER, BROKER, taken))]
    line = refusal(twin)
    assert "broker 2 cannot register: another broker with this id is in the cluster" in line
    assert_unharmed(cluster, "t", 1, 2)
    assert "STALE_BROKER_EPOCH" not in cluster.log_text(2), "its registration was taken from it"


def test_a_broker_with_the_id_of_the_leading_controller_ends(new_cluster: NewCluster) -> None:
    cluster = new_cluster([PYKBROKER] * 3)
    cluster.start()
    create_replicated_topic(cluster, "t")
    leader = cluster.active_controller()
    servers = ",".join(each.controller_endpoint for each in cluster.members)
    taken = {
        "node.id": str(leader),
        "controller.quorum.voters": "",
        "controller.quorum.bootstrap.servers": servers,
    }
    twin = cluster.nodes[cluster.add(NodeSpec(PYKBROKER, BROKER, taken))]
    line = refusal(twin)
    assert f"node.id={leader} is taken: the leader of the quorum, at " in line
    assert cluster.nodes[leader].member.controller_endpoint in line
    assert_unharmed(cluster, "t", 1, 2, 3)
