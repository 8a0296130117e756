"""A quorum of static voters becomes one of dynamic voters while it works (kraft.version 0 to 1, KIP-853)."""

from __future__ import annotations

import pytest

from compat_tests.apache_kafka.tools import Tool, ToolFailed, run_tool
from compat_tests.waiting import until

from .cluster import Cluster
from .conftest import CLUSTER_PROPERTIES, NewCluster
from .layout import KAFKA, PYKBROKER
from .topics import create_replicated_topic

NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"


def directories(cluster: Cluster) -> dict[int, str]:
    """Of the voters, as Kafka's tool tells."""
    command = (Tool.METADATA_QUORUM, "--bootstrap-server", cluster.bootstrap, "describe", "--replication")
    rows = [line.split() for line in run_tool(*command).lines]
    return {int(row[0]): row[1] for row in rows if row and row[-1] in ("Leader", "Follower")}


def upgrade(cluster: Cluster) -> bool:
    """The leader refuses until every voter has told it of itself, which each does within some seconds."""
    try:
        run_tool(Tool.FEATURES, "--bootstrap-server", cluster.bootstrap, "upgrade", "--feature", "kraft.version=1")
    except ToolFailed as failed:
        if "not all of the voters support it" in str(failed):
            return False
        raise
    return True


@pytest.mark.java
@pytest.mark.parametrize(
    "kinds", [(PYKBROKER, PYKBROKER, PYKBROKER), (PYKBROKER, KAFKA, PYKBROKER)], ids=["own", "mixed"]
)
def test_static_voters_move_to_the_log(new_cluster: NewCluster, kinds: tuple[str, ...]) -> None:
    cluster = new_cluster(list(kinds), properties=CLUSTER_PROPERTIES)
    cluster.start()
    assert directories(cluster)[cluster.active_controller()] == NO_DIRECTORY
    until(lambda: upgrade(cluster), "kraft.version is 1")
    described = run_tool(Tool.FEATURES, "--bootstrap-server", cluster.bootstrap, "describe").stdout
    [line] = [line for line in described.splitlines() if "kraft.version" in line]
    assert "FinalizedVersionLevel: 1" in line
    until(lambda: NO_DIRECTORY not in directories(cluster).values(), "all voters have directories")
    voters = directories(cluster)
    assert sorted(voters) == [1, 2, 3]
    leader = cluster.active_controller()
    gone = next(node_id for node_id in (1, 3, 2) if node_id != leader)
    command = (Tool.METADATA_QUORUM, "--bootstrap-server", cluster.bootstrap, "remove-controller")
    run_tool(*command, "--controller-id", str(gone), "--controller-directory-id", voters[gone])
    until(lambda: set(cluster.quorum().voters) == {1, 2, 3} - {gone}, "one voter less")
    cluster.kill(leader)
    cluster.start(leader)
    create_replicated_topic(cluster, "afterwards", replication_factor=3)
