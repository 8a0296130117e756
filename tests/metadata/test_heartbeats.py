"""Brokers go in an orderly way, come back after a crash, and lose disks."""

from __future__ import annotations

from pykbroker.metadata.records import encode_record
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse, UnregisterBrokerRequest
from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord, PartitionRecord, TopicRecord
from pykbroker.state_machine import Result
from tests.metadata.cluster import Cluster, directory_id
from tests.metadata.test_brokers import partition, three_nodes
from tests.metadata.test_topics import creatable, create


def beat(cluster: Cluster, broker_id: int, offset: int | None = None, **fields: object) -> BrokerHeartbeatResponse:
    """offset: as far as the broker has read, all of it where none is given."""
    request = BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=cluster.image.brokers[broker_id].epoch,
        current_metadata_offset=cluster.image.offset if offset is None else offset,
        **fields,
    )
    response: BrokerHeartbeatResponse = cluster.ask(request)
    assert response.error_code == 0
    return response


def test_a_broker_that_shuts_down_goes_when_the_others_know_who_leads() -> None:
    cluster = three_nodes()
    before = cluster.image.offset
    first = beat(cluster, 2, want_shut_down=True)
    assert (first.should_shut_down, first.is_fenced) == (False, False)
    assert cluster.image.brokers[2].in_controlled_shutdown
    assert (partition(cluster).leader, partition(cluster).isr) == (3, (3, 1))
    beat(cluster, 3, offset=before)
    assert not beat(cluster, 2, want_shut_down=True).should_shut_down, "broker 3 has not read yet that it leads"
    beat(cluster, 3)
    last = beat(cluster, 2, want_shut_down=True)
    assert (last.should_shut_down, last.is_fenced) == (True, True)
    assert cluster.image.brokers[2].fenced
    cluster.add_broker(2)
    assert not cluster.image.brokers[2].in_controlled_shutdown


def test_a_broker_goes_when_the_others_have_read_the_last_record_of_its_handover() -> None:
    cluster = three_nodes()
    beat(cluster, 2, want_shut_down=True)
    last_of_handover = cluster.image.offset
    beat(cluster, 3, offset=last_of_handover - 1)
    assert not beat(cluster, 2, want_shut_down=True).should_shut_down
    beat(cluster, 3, offset=last_of_handover)
    assert beat(cluster, 2, want_shut_down=True).should_shut_down


def test_a_broker_that_leads_nothing_shuts_down_at_once() -> None:
    cluster = three_nodes()
    response = beat(cluster, 3, want_shut_down=True)
    assert (response.should_shut_down, response.is_fenced) == (True, True)
    assert partition(cluster).isr == (2, 1)


def test_new_replicas_go_to_a_broker_that_has_shut_down_and_to_none_that_is_about_to() -> None:
    cluster = three_nodes()
    beat(cluster, 2, want_shut_down=True)
    refused = create(cluster, creatable("early", 1, 3))["early"]
    assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    beat(cluster, 3)
    assert beat(cluster, 2, want_shut_down=True).should_shut_down
    assert create(cluster, creatable("late", 1, 3))["late"].error_code == ErrorCode.NONE
    placed = cluster.image.topics["late"].partitions[0]
    assert sorted(placed.replicas) == [1, 2, 3]
    assert 2 not in placed.isr


def test_a_shutdown_goes_on_with_the_next_controller() -> None:
    cluster = three_nodes()
    beat(cluster, 2, want_shut_down=True)
    cluster.restart_controller()
    assert beat(cluster, 2, want_shut_down=True).should_shut_down, "it leads nothing any more"


def test_a_broker_in_shutdown_does_not_lead_again() -> None:
    cluster = three_nodes(replicas=2)
    beat(cluster, 2, want_shut_down=True)
    beat(cluster, 3, want_fence=True)
    assert partition(cluster).leader == -1


def test_a_failed_directory_takes_its_replicas_out_and_leaves_the_broker() -> None:
    cluster = three_nodes()
    cluster.register(
        2, incarnation_id=cluster.image.brokers[2].incarnation_id, directories=[directory_id(2), b"2" * 16]
    )
    beat(cluster, 2, offline_log_dirs=[directory_id(2), b"?" * 16])
    assert cluster.image.is_alive(2)
    assert cluster.image.brokers[2].directories == (b"2" * 16,)
    assert (partition(cluster).leader, partition(cluster).isr) == (3, (3, 1))
    length = len(cluster.log)
    beat(cluster, 2, offline_log_dirs=[directory_id(2)])
    assert len(cluster.log) == length, "it was told already"


def test_a_broker_without_any_directory_left_is_fenced() -> None:
    cluster = three_nodes()
    assert beat(cluster, 2, offline_log_dirs=[directory_id(2)]).is_fenced
    assert (partition(cluster).leader, partition(cluster).isr) == (3, (3, 1))
    length = len(cluster.log)
    assert beat(cluster, 2, offline_log_dirs=[directory_id(2)]).is_fenced
    assert len(cluster.log) == length


def test_cordoned_directories_are_noted_once() -> None:
    cluster = three_nodes()
    for cordoned in ([directory_id(2)], []):
        beat(cluster, 2, cordoned_log_dirs=cordoned)
        length = len(cluster.log)
        assert cluster.image.brokers[2].cordoned_log_dirs == tuple(cordoned)
        beat(cluster, 2, cordoned_log_dirs=cordoned)
        beat(cluster, 2, cordoned_log_dirs=None)
        assert len(cluster.log) == length


def test_an_unregistered_broker_is_gone_for_good() -> None:
    cluster = three_nodes()
    assert cluster.ask(UnregisterBrokerRequest(broker_id=2)).error_code == 0
    assert 2 not in cluster.image.brokers
    assert (partition(cluster).leader, partition(cluster).isr) == (3, (3, 1))
    refused = cluster.ask(UnregisterBrokerRequest(broker_id=2))
    assert refused.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert cluster.ask(BrokerHeartbeatRequest(broker_id=2)).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_directory_of_another_broker_is_refused() -> None:
    cluster = three_nodes()
    cluster.advance(9_000)
    assert cluster.register(4, directories=[directory_id(2)]).error_code == ErrorCode.INVALID_REGISTRATION
    assert cluster.register(4, directories=[]).error_code == ErrorCode.INVALID_REGISTRATION
    assert cluster.register(4, directories=[bytes(16)]).error_code == ErrorCode.INVALID_REGISTRATION


def test_fencing_a_broker_changes_its_partitions_alone() -> None:
    """5,000 partitions of the broker, in a cluster that has 20,000."""
    cluster = three_nodes()
    records = []
    for number in range(20):
        topic_id = bytes([number + 1]) * 16
        records.append(TopicRecord(name=f"topic-{number}", topic_id=topic_id))
        replicas = [2, 3] if number < 5 else [3, 1]
        records += [
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                directories=[directory_id(each) for each in replicas],
            )
            for index in range(1000)
        ]
    for record in records:
        cluster.controller.replay(record, len(cluster.log))
        cluster.image.replay(record, len(cluster.log))
        cluster.log.append(encode_record(record))
    cluster.take(Result())
    changed = cluster.step(
        BrokerHeartbeatRequest(
            broker_id=2,
            broker_epoch=cluster.image.brokers[2].epoch,
            current_metadata_offset=cluster.image.offset,
            want_fence=True,
        )
    )[0]
    assert len(changed) == 5_000 + 1 + 1
    of_others = {bytes([number + 1]) * 16 for number in range(5, 20)}
    assert not any(isinstance(record, PartitionChangeRecord) and record.topic_id in of_others for record in changed)
