"""One quorum of pykbroker and Apache Kafka: leadership goes to and fro, and each follows the other's metadata log.

Whoever has less of the log than a majority can't be elected, so what was written while a node was away tells who leads.
"""

from __future__ import annotations

import pytest

from compat_tests.apache_kafka.tools import Tool, ToolFailed, run_tool
from compat_tests.waiting import until

from .cluster import Cluster
from .conftest import CLUSTER_PROPERTIES, NewCluster
from .layout import KAFKA, PYKBROKER
from .topics import create_replicated_topic
from .view import NoAnswer

PYKBROKERS, APACHE = (1, 2), 3


def voters(cluster: Cluster) -> set[int] | None:
    """None while nobody says who they are."""
    try:
        return set(cluster.quorum().voters)
    except NoAnswer:
        return None


@pytest.mark.java
def test_leadership_passes_between_pykbroker_and_apache_kafka(new_cluster: NewCluster) -> None:
    cluster = new_cluster([PYKBROKER, PYKBROKER, KAFKA], properties=CLUSTER_PROPERTIES)
    cluster.start()
    cluster.kill(1)
    create_replicated_topic(cluster, "without-1", replication_factor=2)
    cluster.kill(2)
    cluster.start(1)
    assert cluster.active_controller() == APACHE
    create_replicated_topic(cluster, "under-kafka", replication_factor=2)
    cluster.start(2)
    cluster.kill(APACHE)
    assert cluster.active_controller() in PYKBROKERS
    create_replicated_topic(cluster, "under-pykbroker", replication_factor=2)
    cluster.start(APACHE)
    topics = ("without-1", "under-kafka", "under-pykbroker")
    for topic in topics:
        cluster.wait_until_in_sync(topic)
    views = [cluster.view(*topics, of=node_id).topics for node_id in cluster.nodes]
    assert views[0] == views[1] == views[2]
    shown = run_tool(Tool.METADATA_QUORUM, "--bootstrap-server", cluster.bootstrap, "describe", "--status")
    assert f"LeaderId:               {cluster.quorum().leader}" in shown.stdout


@pytest.mark.java
def test_voters_are_removed_and_added_by_kafkas_tool(new_cluster: NewCluster) -> None:
    cluster = new_cluster([PYKBROKER, KAFKA, PYKBROKER], properties=CLUSTER_PROPERTIES, is_dynamic=True)
    cluster.start()
    command = (Tool.METADATA_QUORUM, "--bootstrap-server", cluster.bootstrap)
    described = run_tool(*command, "describe", "--replication").lines
    (directory_id,) = [line.split()[1] for line in described if line.split()[:1] == ["3"]]
    run_tool(*command, "remove-controller", "--controller-id", "3", "--controller-directory-id", directory_id)
    until(lambda: voters(cluster) == {1, 2}, "node 3 votes no more")
    own = str(cluster.nodes[3].properties_file)
    until(lambda: _is_added(*command, "--command-config", own), "the leader takes node 3 back")
    until(lambda: voters(cluster) == {1, 2, 3}, "node 3 votes again")


def _is_added(tool: Tool, *arguments: str) -> bool:
    """Kafka's tool does not try again where the leader has just changed."""
    try:
        run_tool(tool, *arguments, "add-controller")
    except ToolFailed as failed:
        if "NotLeaderOrFollower" in str(failed):
            return False
        raise
    return True
