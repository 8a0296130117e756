"""A broker that starts again leads by metadata of before, and shows no more until its registration is among them."""

from pathlib import Path

from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord, RegisterBrokerRecord
from pykbroker.replication.partition import Partition
from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS
from tests.api.api_node import ApiNode

INCARNATION_ID = b"1" * 16


def started_again(path: Path) -> tuple[ApiNode, bytes]:
    """A node that leads a partition of three records alone, as far as it knows; no high watermark is checkpointed."""
    node = ApiNode(path)
    topic_id = node.create_topic("apples", replicas=[1, 2])
    node.replay(PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=[1], leader=1))
    node.append("apples", b"a", b"b", b"c")
    assert node.partition("apples").high_watermark == 3
    node.incarnation_id = INCARNATION_ID
    node.restart(clean=False)
    assert node.partition("apples").is_leader
    return node, topic_id


def register(incarnation_id: bytes) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(broker_id=1, incarnation_id=incarnation_id, broker_epoch=9)


def shown(partition: Partition) -> tuple[int, int]:
    return partition.high_watermark, partition.log.log_end_offset


def test_a_leader_goes_on_when_the_registration_of_its_process_is_applied(tmp_path: Path) -> None:
    node, _ = started_again(tmp_path)
    assert shown(node.partition("apples")) == (0, 3)
    node.replay(register(b"0" * 16))
    assert shown(node.partition("apples")) == (0, 3), "that is the process of before"
    node.replay(register(INCARNATION_ID))
    assert shown(node.partition("apples")) == (3, 3)
    node.append("apples", b"d")
    assert shown(node.partition("apples")) == (4, 4)


def test_what_the_controller_decided_meanwhile_counts_first(tmp_path: Path) -> None:
    """Another replica was in sync in the end, and leads now: what it may lack is not shown."""
    node, topic_id = started_again(tmp_path)
    node.replay(
        register(INCARNATION_ID),
        PartitionChangeRecord(topic_id=topic_id, partition_id=0, isr=[2], leader=2),
    )
    assert shown(node.partition("apples")) == (0, 3)


def test_coordinators_begin_when_the_registration_of_their_process_is_applied(tmp_path: Path) -> None:
    """Their markers would have the offsets and the leader epoch of records that a power cut took here alone."""
    node = ApiNode(tmp_path)
    node.create_topic(CONSUMER_OFFSETS)
    assert node.groups.loading_partitions == [0]
    node.incarnation_id = INCARNATION_ID
    node.restart(clean=False)
    assert node.partition(CONSUMER_OFFSETS).is_leader
    assert node.groups.loading_partitions == []
    node.replay(register(INCARNATION_ID))
    assert node.groups.loading_partitions == [0]
