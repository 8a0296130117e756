"""Partitions move to other brokers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.metadata.cluster import Cluster, directory_id
from tests.metadata.test_alter_partition import propose
from tests.metadata.test_brokers import partition
from tests.metadata.test_topics import creatable, create


def five_nodes(**configs: str | None) -> Cluster:
    """The topic "t" on brokers 1, 2 and 3."""
    cluster = Cluster()
    for broker_id in range(1, 6):
        cluster.add_broker(broker_id)
    create(cluster, creatable("t", -1, -1, assignments=[[1, 2, 3]], configs=configs))
    return cluster


def reassign(
    cluster: Cluster,
    replicas: Sequence[int] | None,
    *,
    topic: str = "t",
    index: int = 0,
    may_change_factor: bool = True,
) -> int:
    wanted = ReassignablePartition(partition_index=index, replicas=None if replicas is None else list(replicas))
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=may_change_factor, topics=[ReassignableTopic(name=topic, partitions=[wanted])]
    )
    response = cluster.ask(request)
    assert response.error_code == 0
    return int(response.responses[0].partitions[0].error_code)


def ongoing(cluster: Cluster, *indexes: int) -> list[tuple[list[int], list[int], list[int]]]:
    topics = [ListPartitionReassignmentsTopics(name="t", partition_indexes=list(indexes))] if indexes else None
    response = cluster.ask(ListPartitionReassignmentsRequest(topics=topics))
    return [
        (each.replicas, each.adding_replicas, each.removing_replicas)
        for topic in response.topics
        for each in topic.partitions
    ]


def test_a_move_is_complete_when_all_new_replicas_are_in_sync() -> None:
    cluster = five_nodes()
    assert reassign(cluster, [4, 5, 1]) == 0
    state = partition(cluster)
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((4, 5, 1, 2, 3), (4, 5), (2, 3))
    assert (state.isr, state.leader, state.leader_epoch) == ((1, 2, 3), 1, 0)
    assert state.directories == tuple(map(directory_id, state.replicas))
    assert ongoing(cluster) == ongoing(cluster, 0, 7) == [([4, 5, 1, 2, 3], [4, 5], [2, 3])]
    assert propose(cluster, [1, 2, 3, 4], 1).error_code == 0
    assert partition(cluster).is_reassigning
    row = propose(cluster, [1, 2, 3, 4, 5], 1)
    assert (row.error_code, row.isr, row.leader_epoch) == (0, [1, 4, 5], 1)
    state = partition(cluster)
    assert (state.replicas, state.adding_replicas, state.removing_replicas, state.isr) == ((4, 5, 1), (), (), (1, 4, 5))
    assert state.directories == tuple(map(directory_id, state.replicas))
    assert ongoing(cluster) == []


def test_a_leader_that_moves_away_learns_that_another_one_leads() -> None:
    cluster = five_nodes()
    assert reassign(cluster, [4]) == 0
    assert propose(cluster, [1, 2, 3, 4], 1).error_code == ErrorCode.NEW_LEADER_ELECTED
    state = partition(cluster)
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((4,), (4,), 4, 1)


def test_a_partition_loses_replicas_at_once_and_gains_them_when_they_are_in_sync() -> None:
    cluster = five_nodes()
    assert reassign(cluster, [2, 1]) == 0
    state = partition(cluster)
    assert (state.replicas, state.isr, state.leader, state.leader_epoch, state.is_reassigning) == (
        (2, 1),
        (1, 2),
        1,
        1,
        False,
    ), "an epoch of its own keeps the removed replica from fetching on"
    assert reassign(cluster, [2, 1, 5]) == 0
    assert partition(cluster).adding_replicas == (5,)


def test_replicas_that_are_there_already_are_granted_and_nothing_changes() -> None:
    cluster = five_nodes()
    length = len(cluster.log)
    assert reassign(cluster, [1, 2, 3]) == 0
    assert len(cluster.log) == length


def test_a_move_is_cancelled() -> None:
    cluster = five_nodes()
    assert reassign(cluster, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    reassign(cluster, [4, 5, 1])
    assert propose(cluster, [1, 2, 4], 1).error_code == 0
    assert reassign(cluster, None) == 0
    state = partition(cluster)
    assert (state.replicas, state.isr, state.leader, state.is_reassigning) == ((1, 2, 3), (1, 2), 1, False)


@pytest.mark.parametrize(("unclean", "error"), [("false", ErrorCode.INVALID_REPLICA_ASSIGNMENT), ("true", 0)])
def test_a_move_of_which_only_new_replicas_are_in_sync_is_cancelled_only_where_that_may_be(
    unclean: str, error: int
) -> None:
    cluster = five_nodes(**{"unclean.leader.election.enable": unclean})
    reassign(cluster, [4, 5, 2])
    propose(cluster, [1, 4], 1)
    cluster.heartbeat(1, want_fence=True)
    assert (partition(cluster).leader, partition(cluster).isr) == (4, (4,))
    assert reassign(cluster, None) == error
    if not error:
        assert (partition(cluster).replicas, partition(cluster).leader) == ((2, 1, 3), 2)


def test_a_move_takes_the_place_of_another() -> None:
    cluster = five_nodes()
    reassign(cluster, [4, 2, 3])
    assert reassign(cluster, [5, 2, 3]) == 0
    state = partition(cluster)
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((5, 2, 3, 1, 4), (5,), (1, 4))


@pytest.mark.parametrize(
    ("replicas", "error"),
    [
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([-1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_replicas_that_cannot_be_are_refused(replicas: list[int], error: ErrorCode) -> None:
    assert reassign(five_nodes(), replicas) == error


def test_the_replication_factor_stays_where_it_must_not_change() -> None:
    cluster = five_nodes()
    assert reassign(cluster, [4, 5], may_change_factor=False) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(cluster, [4, 5, 1], may_change_factor=False) == 0
    assert reassign(cluster, [4, 5, 2], may_change_factor=False) == 0, "what is on its way counts as it will be"
    assert reassign(cluster, [4, 5, 1, 2, 3], may_change_factor=False) == ErrorCode.INVALID_REPLICATION_FACTOR


def test_what_is_not_there_does_not_move() -> None:
    cluster = five_nodes()
    assert reassign(cluster, [1], topic="u") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert reassign(cluster, [1], index=1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
