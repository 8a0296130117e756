"""A node that is too far behind the metadata log begins with a snapshot of its leader (KIP-630)."""

from __future__ import annotations

import pytest

from .conftest import CLUSTER_PROPERTIES, NewCluster
from .layout import KAFKA, PYKBROKER
from .topics import create_replicated_topic

SHORT_LOG = {
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "metadata.max.retention.bytes": "1000",
    "internal.metadata.log.segment.bytes": "3000",
    "internal.metadata.delete.delay.millis": "500",
}
TOPICS = 20


@pytest.mark.parametrize("late", [PYKBROKER, pytest.param(KAFKA, marks=pytest.mark.java)])
def test_a_node_that_comes_late_gets_the_leaders_snapshot(new_cluster: NewCluster, late: str) -> None:
    cluster = new_cluster([PYKBROKER, PYKBROKER, late], properties=CLUSTER_PROPERTIES | SHORT_LOG)
    cluster.start(1, 2)
    topics = [f"topic-{number}" for number in range(TOPICS)]
    for topic in topics:
        create_replicated_topic(cluster, topic, replication_factor=2)
    cluster.start(3)
    for topic in topics:
        cluster.wait_until_in_sync(topic)
    views = [cluster.view(*topics, of=node_id).topics for node_id in cluster.nodes]
    assert views[0] == views[1] == views[2]
    logs = sorted(each.name for each in (cluster.directory / "node-3").glob("**/__cluster_metadata-0/*.log"))
    assert logs
    assert "00000000000000000000.log" not in logs
