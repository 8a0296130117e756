"""Replicas on nodes of both kinds: whoever of them is killed, and whoever leads, all have the same records."""

from __future__ import annotations

import pytest

from compat_tests.steady_producers import ConfluentProducer, assert_stored, finished, read_numbers
from compat_tests.waiting import until

from .cluster import Cluster
from .conftest import NewCluster
from .layout import KAFKA, PYKBROKER
from .replicas import epochs_in_file, epochs_of_records, lead, records_file
from .topics import create_replicated_topic

pytestmark = pytest.mark.flaky(reruns=0)

TOPIC, PARTITIONS = "replicated", 3
ASSIGNMENT = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
"""Each node leads one partition, until it is killed."""
AT_A_TIME = 300


@pytest.mark.java
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kinds", [[PYKBROKER, PYKBROKER, KAFKA], [KAFKA, KAFKA, PYKBROKER]], ids=["two", "one"])
def test_replicas_of_both_kinds_are_alike_whoever_is_killed(new_cluster: NewCluster, kinds: list[str]) -> None:
    """`two` of pykbroker and one of Apache Kafka, and the other way round."""
    cluster = new_cluster([*kinds])
    cluster.start()
    create_replicated_topic(cluster, TOPIC, assignment=ASSIGNMENT)
    producer = ConfluentProducer(cluster, TOPIC, PARTITIONS, pause_s=0.002, in_flight=1)
    with finished(producer):
        for victim in cluster.nodes:
            wait_for_more(producer)
            cluster.kill(victim)
            wait_for_more(producer)
            cluster.start(victim)
            wait_until_all_are_in_sync(cluster)
        wait_for_more(producer)

    read = []
    for turn in range(3):
        lead(cluster, TOPIC, [ASSIGNMENT[partition][turn] for partition in range(PARTITIONS)])
        assert_stored(cluster, TOPIC, PARTITIONS, producer.acknowledged, f"leaders in turn {turn}")
        read.append(read_numbers(cluster, TOPIC, PARTITIONS))
    assert read[0] == read[1] == read[2]
    wait_until_all_are_in_sync(cluster)

    stop_with_all_files_written(cluster)
    for partition in range(PARTITIONS):
        records = {node_id: records_file(cluster, node_id, TOPIC, partition) for node_id in cluster.nodes}
        assert records[1] == records[2] == records[3]
        epochs = epochs_of_records(records[1])
        assert len(epochs) > 1
        for node_id in cluster.nodes:
            written = dict(epochs_in_file(cluster, node_id, TOPIC, partition))
            assert {epoch: written.get(epoch) for epoch, _ in epochs} == dict(epochs), f"node {node_id}"


def wait_for_more(producer: ConfluentProducer) -> None:
    enough = len(producer.acknowledged) + AT_A_TIME
    until(lambda: len(producer.acknowledged) >= enough, "more is acknowledged")


def wait_until_all_are_in_sync(cluster: Cluster) -> None:
    for partition in range(PARTITIONS):
        cluster.wait_until_in_sync(TOPIC, partition)


def stop_with_all_files_written(cluster: Cluster) -> None:
    """pykbroker writes a log's epochs when it flushes it, at the latest as it stops; Apache Kafka at once. The last
    node has no quorum to stop with.
    """
    *first, last = sorted(cluster.nodes, key=lambda node_id: cluster.nodes[node_id].kind == KAFKA)
    cluster.stop(*first)
    cluster.kill(last)
