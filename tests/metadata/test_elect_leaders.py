"""Leaders elected on request, and from time to time."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.reassignments import ElectLeadersRequest, TopicPartitions
from tests.metadata.cluster import Cluster
from tests.metadata.test_alter_partition import propose
from tests.metadata.test_brokers import partition, three_nodes

PREFERRED, UNCLEAN = 0, 1


def elect(cluster: Cluster, election_type: int, *indexes: int, topic: str = "t") -> dict[int, int]:
    """The error code of each partition; of all of them where none is named."""
    wanted = [TopicPartitions(topic=topic, partitions=list(indexes))] if indexes else None
    response = cluster.ask(ElectLeadersRequest(election_type=election_type, topic_partitions=wanted))
    assert response.error_code == 0
    return {
        row.partition_id: row.error_code for each in response.replica_election_results for row in each.partition_result
    }


def test_the_preferred_leader_leads_again_where_it_is_in_sync() -> None:
    cluster = three_nodes()
    assert elect(cluster, PREFERRED, 0) == {0: ErrorCode.ELECTION_NOT_NEEDED}
    cluster.heartbeat(2, want_fence=True)
    assert elect(cluster, PREFERRED, 0) == {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    cluster.heartbeat(2)
    assert elect(cluster, PREFERRED, 0) == {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}, "it is not in sync yet"
    join(cluster, [3, 1, 2])
    assert elect(cluster, PREFERRED, 0) == {0: 0}
    assert partition(cluster).leader == 2


def join(cluster: Cluster, isr: list[int]) -> None:
    assert propose(cluster, isr, partition(cluster).leader).error_code == 0


def test_of_all_partitions_only_those_are_answered_that_need_an_election() -> None:
    cluster = three_nodes()
    assert elect(cluster, PREFERRED) == {}
    assert elect(cluster, UNCLEAN) == {}
    cluster.heartbeat(2, want_fence=True)
    assert elect(cluster, PREFERRED) == {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


def test_what_is_not_there_cannot_be_led() -> None:
    cluster = three_nodes()
    assert elect(cluster, PREFERRED, 7) == {7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert elect(cluster, PREFERRED, 0, topic="u") == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    request = ElectLeadersRequest(election_type=3, topic_partitions=[TopicPartitions(topic="t", partitions=[0])])
    refused = cluster.ask(request)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.replica_election_results[0].partition_result[0].error_code == ErrorCode.INVALID_REQUEST


def test_an_unclean_leader_can_be_asked_for_where_nobody_leads() -> None:
    cluster = leaderless()
    assert elect(cluster, UNCLEAN, 0) == {0: 0}
    assert (partition(cluster).leader, partition(cluster).isr, partition(cluster).leader_recovery_state) == (2, (2,), 1)
    assert elect(cluster, UNCLEAN, 0) == {0: ErrorCode.ELECTION_NOT_NEEDED}


def leaderless() -> Cluster:
    """Replicas are 2 and 3, only 3 is in sync, and 3 is away."""
    cluster = three_nodes(replicas=2)
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(2)
    cluster.heartbeat(3, want_fence=True)
    assert partition(cluster).leader == -1
    return cluster


def test_nobody_is_elected_where_nobody_is_there() -> None:
    cluster = leaderless()
    cluster.heartbeat(2, want_fence=True)
    assert elect(cluster, UNCLEAN, 0) == {0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def allow_unclean(cluster: Cluster, resource_type: int, name: str) -> None:
    config = IncrementalAlterConfigsRequestAlterableConfig(name="unclean.leader.election.enable", value="true")
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=[config]
    )
    response = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]))
    assert [each.error_code for each in response.responses] == [0]


def test_a_topic_that_allows_it_at_run_time_gets_an_unclean_leader_at_once() -> None:
    for resource in ((2, "t"), (4, "")):
        cluster = leaderless()
        allow_unclean(cluster, *resource)
        cluster.advance(0)
        assert partition(cluster).leader == 2


def test_leaders_go_back_to_preferred_replicas_from_time_to_time() -> None:
    cluster = three_nodes()
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(2)
    join(cluster, [3, 1, 2])
    stay_alive(cluster, 299_000)
    assert partition(cluster).leader == 3
    stay_alive(cluster, 2_000)
    assert partition(cluster).leader == 2


def stay_alive(cluster: Cluster, ms: int) -> None:
    for _ in range(0, ms, 1_000):
        cluster.advance(1_000)
        for broker_id in (1, 2, 3):
            cluster.heartbeat(broker_id)


def test_leaders_stay_where_they_are_when_balancing_is_off() -> None:
    cluster = three_nodes(properties={"auto.leader.rebalance.enable": "false"})
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(2)
    join(cluster, [3, 1, 2])
    stay_alive(cluster, 400_000)
    assert partition(cluster).leader == 3


def test_a_controller_that_is_not_active_waits_for_nothing() -> None:
    cluster = leaderless()
    assert cluster.controller.next_deadline_ms() is not None
    cluster.controller.deactivate()
    assert cluster.controller.next_deadline_ms() is None
