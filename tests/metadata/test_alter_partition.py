"""Leaders propose who is in sync."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from tests.metadata.cluster import Cluster
from tests.metadata.test_brokers import partition, three_nodes


def propose(
    cluster: Cluster,
    isr: Sequence[int],
    broker_id: int = 2,
    *,
    topic_id: bytes | None = None,
    index: int = 0,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
    recovery_state: int = 0,
    epochs: dict[int, int] | None = None,
    version: int = 3,
) -> AlterPartitionResponsePartitionData:
    """The epochs of leader and partition are given as what they are more than the partition has."""
    state, topic = partition(cluster), cluster.image.topic("t")
    assert topic is not None
    brokers = cluster.image.brokers
    with_epochs = [
        BrokerState(
            broker_id=each,
            broker_epoch=(epochs or {}).get(each, brokers[each].epoch if each in brokers else -1),
        )
        for each in isr
    ]
    wanted = AlterPartitionRequestPartitionData(
        partition_index=index,
        leader_epoch=state.leader_epoch + leader_epoch,
        partition_epoch=state.partition_epoch + partition_epoch,
        new_isr=list(isr) if version == 2 else [],
        new_isr_with_epochs=with_epochs if version == 3 else [],
        leader_recovery_state=recovery_state,
    )
    topics = [AlterPartitionRequestTopicData(topic_id=topic_id or topic.topic_id, partitions=[wanted])]
    response = cluster.ask(
        AlterPartitionRequest(broker_id=broker_id, broker_epoch=brokers[broker_id].epoch, topics=topics)
    )
    assert response.error_code == 0
    [answer] = response.topics
    assert answer.topic_id == topics[0].topic_id
    row: AlterPartitionResponsePartitionData = answer.partitions[0]
    assert row.partition_index == index
    return row


@pytest.mark.parametrize("version", [2, 3])
def test_the_isr_shrinks_and_grows_and_the_answer_is_the_new_state(version: int) -> None:
    cluster = three_nodes()
    row = propose(cluster, [2, 1], version=version)
    assert (row.error_code, row.leader_id, row.isr, row.leader_epoch, row.partition_epoch) == (0, 2, [2, 1], 0, 1)
    assert (partition(cluster).isr, partition(cluster).leader_epoch, partition(cluster).partition_epoch) == (
        (2, 1),
        0,
        1,
    )
    row = propose(cluster, [2, 1, 3], version=version)
    assert (row.error_code, row.isr, row.partition_epoch) == (0, [2, 1, 3], 2)


def test_a_proposal_of_what_is_so_already_changes_nothing() -> None:
    cluster = three_nodes()
    length = len(cluster.log)
    row = propose(cluster, [2, 3, 1])
    assert (row.error_code, row.partition_epoch, len(cluster.log)) == (0, 0, length)


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ({"topic_id": b"x" * 16}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"index": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"broker_id": 3}, ErrorCode.INVALID_REQUEST),
        ({"isr": [3, 1]}, ErrorCode.INVALID_REQUEST),
        ({"isr": []}, ErrorCode.INVALID_REQUEST),
        ({"isr": [2, 2]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [2, 9]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [2], "recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ({"recovery_state": 7}, ErrorCode.INVALID_REQUEST),
        ({"epochs": {3: 0}}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_what_does_not_fit_the_partition_is_refused(what: dict[str, object], error: ErrorCode) -> None:
    cluster = three_nodes()
    length = len(cluster.log)
    row = propose(cluster, **{"isr": [2, 3], **what})  # type: ignore[arg-type]
    assert (row.error_code, len(cluster.log)) == (error, length)


def test_an_epoch_of_minus_one_is_not_checked() -> None:
    cluster = three_nodes()
    assert propose(cluster, [2, 3], epochs={2: -1, 3: -1}).error_code == 0


def test_who_is_fenced_or_about_to_go_cannot_join() -> None:
    cluster = three_nodes()
    cluster.heartbeat(3, want_fence=True)
    assert partition(cluster).isr == (2, 1)
    assert propose(cluster, [2, 1, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA
    cluster.heartbeat(3)
    assert propose(cluster, [2, 1, 3]).error_code == 0


def test_a_request_with_an_epoch_that_is_over_is_refused_as_a_whole() -> None:
    cluster = three_nodes()
    topics = [AlterPartitionRequestTopicData(topic_id=b"x" * 16)]
    request = AlterPartitionRequest(broker_id=2, broker_epoch=cluster.image.brokers[2].epoch + 1, topics=topics)
    assert cluster.ask(request).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.ask(AlterPartitionRequest(broker_id=9, topics=topics)).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_leader_from_an_unclean_election_recovers_before_others_join() -> None:
    cluster = three_nodes(replicas=2, **{"unclean.leader.election.enable": "true"})
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(2)
    cluster.heartbeat(3, want_fence=True)
    cluster.heartbeat(3)
    assert (partition(cluster).leader, partition(cluster).isr, partition(cluster).leader_recovery_state) == (2, (2,), 1)
    assert propose(cluster, [2, 3], recovery_state=1).error_code == ErrorCode.INVALID_REQUEST
    row = propose(cluster, [2], recovery_state=0)
    assert (row.error_code, row.leader_recovery_state, partition(cluster).leader_recovery_state) == (0, 0, 0)
    assert propose(cluster, [2, 3]).error_code == 0
