"""Registration, heartbeats, sessions, and what they do to the partitions."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pykbroker.metadata.features import SUPPORTED_FEATURES, UnsupportedFeatureLevel, finalized_features
from pykbroker.metadata.partition_state import PartitionState
from pykbroker.metadata.sessions import LONGEST_EXCUSE_MS
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from pykbroker.protocol.messages.metadata_records import (
    BeginTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    TopicRecord,
)
from pykbroker.state_machine import Result
from tests.metadata.cluster import CLUSTER_ID, Cluster, directory_id, one_node
from tests.metadata.test_topics import creatable, create


def partition(cluster: Cluster, topic: str = "t", index: int = 0) -> PartitionState:
    found = cluster.image.partition(topic, index)
    assert found is not None
    return found


def three_nodes(replicas: int = 3, properties: Mapping[str, str] | None = None, **configs: str | None) -> Cluster:
    cluster = Cluster(properties)
    for broker_id in (1, 2, 3):
        cluster.add_broker(broker_id)
    create(cluster, creatable("t", -1, -1, assignments=[[2, 3, 1][:replicas]], configs=configs))
    return cluster


def test_a_broker_registers_fenced_and_is_unfenced_when_it_has_seen_its_registration() -> None:
    cluster = Cluster()
    response = cluster.register(1)
    broker = cluster.image.brokers[1]
    assert (response.error_code, response.broker_epoch, broker.fenced) == (0, len(cluster.log) - 1, True)
    behind = cluster.ask(
        BrokerHeartbeatRequest(broker_id=1, broker_epoch=broker.epoch, current_metadata_offset=broker.epoch - 1)
    )
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    there = cluster.heartbeat(1)
    assert (there.is_caught_up, there.is_fenced) == (True, False)
    assert cluster.image.is_alive(1)


def test_a_registration_of_another_cluster_is_refused() -> None:
    cluster = Cluster()
    request = BrokerRegistrationRequest(broker_id=1, cluster_id="another", incarnation_id=b"i" * 16)
    assert cluster.ask(request).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_broker_that_does_not_know_the_metadata_version_is_refused() -> None:
    cluster = Cluster()
    request = BrokerRegistrationRequest(
        broker_id=1, cluster_id=CLUSTER_ID, incarnation_id=b"i" * 16, log_dirs=[directory_id(1)]
    )
    assert cluster.ask(request).error_code == ErrorCode.INVALID_REGISTRATION
    request.features = [Feature(name="metadata.version", min_supported_version=7, max_supported_version=29)]
    assert cluster.ask(request).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_heartbeats_of_nobody_and_of_earlier_lives_are_refused() -> None:
    cluster = one_node()
    assert cluster.ask(BrokerHeartbeatRequest(broker_id=9)).error_code == ErrorCode.STALE_BROKER_EPOCH
    stale = BrokerHeartbeatRequest(broker_id=1, broker_epoch=0)
    assert cluster.ask(stale).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_the_same_incarnation_keeps_its_epoch_and_stays_unfenced() -> None:
    cluster = Cluster()
    epoch = cluster.register(1, incarnation_id=b"i" * 16).broker_epoch
    cluster.heartbeat(1)
    assert cluster.register(1, incarnation_id=b"i" * 16).broker_epoch == epoch
    assert cluster.image.is_alive(1)


@pytest.mark.parametrize("broker_id", [1, 2])
def test_the_id_of_a_broker_that_lives_is_not_given_to_another_process(broker_id: int) -> None:
    """Also not that of the broker beside the controller, whose session never ends."""
    cluster = three_nodes()
    epoch = cluster.image.brokers[broker_id].epoch
    assert cluster.register(broker_id, incarnation_id=b"j" * 16).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert cluster.image.is_alive(broker_id)
    assert cluster.image.brokers[broker_id].epoch == epoch


def test_a_restarted_node_leads_again_in_a_new_leader_epoch() -> None:
    cluster = one_node()
    create(cluster, creatable("t"))
    before = cluster.image.brokers[1].epoch
    cluster.restart_controller()
    cluster.register(1)
    state = partition(cluster)
    assert (state.leader, state.isr, state.eligible_leader_replicas, state.last_known_elr) == (-1, (), (), (1,))
    assert cluster.image.brokers[1].epoch > before
    cluster.heartbeat(1)
    assert (partition(cluster).leader, partition(cluster).isr, partition(cluster).leader_epoch) == (1, (1,), 2)


def test_a_clean_shutdown_hands_over_then_fences_and_the_next_start_leads() -> None:
    cluster = one_node()
    create(cluster, creatable("t"))
    first = cluster.heartbeat(1, want_shut_down=True)
    assert (first.should_shut_down, partition(cluster).leader) == (False, -1)
    second = cluster.heartbeat(1, want_shut_down=True)
    assert (second.should_shut_down, second.is_fenced) == (True, True)
    assert not cluster.image.is_alive(1)
    cluster.add_broker(1)
    assert partition(cluster).leader == 1


def test_a_second_broker_with_the_same_id_is_refused_while_the_first_is_in_session() -> None:
    cluster = Cluster()
    cluster.add_broker(2)
    assert cluster.register(2).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.advance(9_000)
    assert cluster.register(2).error_code == 0


def test_a_silent_broker_is_fenced_and_what_it_led_is_led_by_the_next_in_sync_replica() -> None:
    cluster = three_nodes()
    assert partition(cluster).leader == 2
    cluster.now_ms += 8_999
    cluster.heartbeat(3)
    cluster.advance(1)
    assert not cluster.image.is_alive(2)
    assert cluster.image.is_alive(1), "the broker beside the controller needs no heartbeats"
    assert (partition(cluster).leader, partition(cluster).isr, partition(cluster).leader_epoch) == (3, (3, 1), 1)
    cluster.heartbeat(2)
    assert cluster.image.is_alive(2)
    assert (partition(cluster).leader, partition(cluster).isr) == (3, (3, 1))


def test_a_controller_that_was_stopped_reads_what_came_meanwhile_before_it_fences_anybody() -> None:
    cluster = three_nodes()
    cluster.now_ms += 60_000
    assert cluster.take(cluster.controller.expire(cluster.now_ms)) == []
    cluster.heartbeat(3)
    cluster.advance(LONGEST_EXCUSE_MS - 1)
    assert cluster.image.is_alive(2)
    cluster.advance(1)
    assert not cluster.image.is_alive(2)
    assert cluster.image.is_alive(3)


def test_a_controller_is_excused_once_for_the_silence_of_a_broker_and_for_no_longer_than_it_was_late() -> None:
    cluster = three_nodes()
    cluster.now_ms += 9_000 + 30
    assert cluster.take(cluster.controller.expire(cluster.now_ms)) == []
    assert cluster.controller.next_deadline_ms() == cluster.now_ms + 30
    cluster.now_ms += 5_000
    assert cluster.take(cluster.controller.expire(cluster.now_ms))
    assert cluster.take(cluster.controller.expire(cluster.now_ms))
    assert not cluster.image.is_alive(2)
    assert not cluster.image.is_alive(3)


def test_a_heartbeat_that_waits_for_its_step_shows_that_the_broker_lives_if_its_epoch_is_the_latest() -> None:
    cluster = three_nodes()
    epoch = cluster.image.brokers[2].epoch
    cluster.now_ms += 8_999
    cluster.heartbeat(3)
    for each in (epoch - 1, epoch):
        assert cluster.controller.next_deadline_ms() == cluster.now_ms + 1
        heartbeat = BrokerHeartbeatRequest(broker_id=2, broker_epoch=each)
        cluster.controller.heartbeat_arrived(heartbeat, cluster.now_ms)
    assert cluster.controller.next_deadline_ms() == cluster.now_ms + 9_000


def test_the_last_in_sync_replica_is_eligible_and_leads_when_it_is_back() -> None:
    cluster = three_nodes(replicas=2)
    cluster.now_ms += 5_000
    cluster.heartbeat(3)
    cluster.advance(5_000)
    assert partition(cluster).isr == (3,)
    cluster.advance(9_000)
    state = partition(cluster)
    assert (state.leader, state.isr, state.eligible_leader_replicas) == (-1, (), (3,))
    cluster.heartbeat(2)
    assert partition(cluster).leader == -1, "a replica that is not in sync may not lead"
    cluster.heartbeat(3)
    assert partition(cluster).leader == 3


def test_an_unclean_election_takes_whoever_is_there_where_the_topic_allows_it() -> None:
    cluster = three_nodes(replicas=2, **{"unclean.leader.election.enable": "true"})
    cluster.now_ms += 5_000
    cluster.heartbeat(3)
    cluster.advance(5_000)
    assert partition(cluster).isr == (3,)
    cluster.heartbeat(2)
    cluster.now_ms += 5_000
    cluster.heartbeat(2)
    cluster.advance(4_000)
    assert (partition(cluster).leader, partition(cluster).isr, partition(cluster).leader_recovery_state) == (2, (2,), 1)


@pytest.mark.parametrize(
    ("eligible", "last_known", "leader", "recovering"),
    [([1], [1], 1, 0), ([], [1], 1, 1), ([2], [2], -1, 0), ([], [2, 1], -1, 0)],
)
def test_a_partition_that_kafka_left_with_eligible_leaders_is_led_by_one_of_them(
    eligible: list[int], last_known: list[int], leader: int, recovering: int
) -> None:
    """Kafka 4 empties the ISR of a partition when its last replica shuts down (KIP-966)."""
    cluster = one_node()
    topic_id = create(cluster, creatable("t"))["t"].topic_id
    cluster.heartbeat(1, want_fence=True)
    left = PartitionChangeRecord(
        partition_id=0,
        topic_id=topic_id,
        replicas=[1, 2],
        directories=[bytes(16), bytes(16)],
        isr=[],
        eligible_leader_replicas=eligible,
        last_known_elr=last_known,
    )
    cluster.take(Result([left]))
    cluster.heartbeat(1)
    state = partition(cluster)
    assert (state.leader, state.leader_recovery_state) == (leader, recovering)
    if leader == 1:
        assert (state.isr, state.eligible_leader_replicas, state.last_known_elr) == ((1,), (), ())
    else:
        assert (state.isr, state.eligible_leader_replicas) == ((), tuple(eligible))


def test_a_new_controller_gives_every_broker_a_whole_session() -> None:
    cluster = three_nodes()
    cluster.now_ms += 100_000
    cluster.restart_controller()
    assert cluster.controller.next_deadline_ms() == 109_000
    assert cluster.register(2).error_code == 0, "nobody is in session with a controller that heard of nobody"


def test_producer_ids_are_given_out_in_blocks_and_never_twice() -> None:
    cluster = one_node()
    epoch = cluster.image.brokers[1].epoch
    starts = []
    for _ in range(3):
        response = cluster.ask(AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch))
        assert (response.error_code, response.producer_id_len) == (0, 1000)
        starts.append(response.producer_id_start)
        cluster.restart_controller()
    assert starts == [0, 1000, 2000]
    stale = cluster.ask(AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch + 1))
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_controller_registers() -> None:
    cluster = Cluster()
    request = ControllerRegistrationRequest(
        controller_id=1, incarnation_id=b"c" * 16, listeners=[Listener(name="CONTROLLER", host="h", port=9093)]
    )
    assert cluster.ask(request).error_code == 0
    assert cluster.image.controllers[1].endpoints[0].port == 9093


def test_a_transaction_that_the_last_controller_left_open_is_aborted() -> None:
    cluster = one_node()
    cluster.take(Result([BeginTransactionRecord(name="x"), TopicRecord(name="half", topic_id=b"t" * 16)]))
    assert cluster.image.topic("half") is None
    cluster.restart_controller()
    assert not cluster.image.in_transaction
    assert cluster.replayed().topic("half") is None
    assert create(cluster, creatable("half"))["half"].error_code == 0


def test_a_cluster_of_another_metadata_version_is_refused() -> None:
    cluster = one_node()
    cluster.take(Result([FeatureLevelRecord(name="metadata.version", feature_level=29)]))
    with pytest.raises(UnsupportedFeatureLevel, match=r"has metadata\.version 29; this broker can use 30"):
        cluster.restart_controller()


def test_features_that_are_not_served_are_told_to_nobody() -> None:
    cluster = one_node()
    told = finalized_features(cluster.image)
    cluster.take(Result([FeatureLevelRecord(name="share.version", feature_level=1)]))
    assert finalized_features(cluster.image) == told
    assert told.keys() == SUPPORTED_FEATURES.keys()
    assert cluster.register(2).error_code == 0
