"""Groups of the consumer protocol as they are read back: whole, in parts, and from older logs."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pykbroker.groups.common.config import GroupConfig
from pykbroker.groups.common.records import BadRecord, CoordinatorRecord, decode_record
from pykbroker.groups.common.topics import FixedTopics
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.consumer.consumer_group_member import UNKNOWN, ConsumerGroupMember
from pykbroker.groups.consumer.consumer_records import (
    assignment_record,
    group_epoch_record,
    member_record,
    target_epoch_record,
)
from pykbroker.groups.shard import GroupShard
from pykbroker.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    TopicPartitions,
)
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from pykbroker.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from pykbroker.state_machine import CoordinatorContext, Token

T = b"t" * 16
GROUP = "g"


def shard_of(*records: CoordinatorRecord) -> GroupShard:
    """With these records read back, from the bytes that are written."""
    shard = GroupShard(GroupConfig(), Random(1), FixedTopics({"events": (T, 3)}))
    for record in records:
        again = decode_record(*record.encode())
        assert again == record
        shard.replay(again.key, again.value)
    return shard


def group_of(shard: GroupShard) -> ConsumerGroup:
    group = shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    return group


def beat(shard: GroupShard, member_id: str, epoch: int, **fields: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch, **fields)
    return shard.handle(request, Token(1), 0, CoordinatorContext(api_version=1), 1)


def test_a_group_is_read_back_as_it_was() -> None:
    shard = shard_of()
    joining: dict[str, Any] = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["events"], "topic_partitions": []}
    records = list(beat(shard, "a", 0, **joining).records)
    records += beat(shard, "b", 0, instance_id="i", **joining).records
    records += beat(shard, "b", -2, instance_id="i").records
    known, again = group_of(shard), group_of(shard_of(*records))
    assert again.members == known.members
    assert again.static_members == known.static_members == {"i": "b"}
    assert again.target_assignment == known.target_assignment
    assert (again.group_epoch, again.metadata_hash) == (known.group_epoch, known.metadata_hash)
    assert (again.assignment_epoch, again.assignment_timestamp_ms) == (known.assignment_epoch, 1)
    assert again.subscribed_topic_names == known.subscribed_topic_names == {"events": 2}
    assert [again.owner_of(T, each) for each in range(3)] == [known.owner_of(T, each) for each in range(3)]
    emptied = shard_of(*records, *known.tombstones())
    assert emptied.groups == {}


def test_a_member_of_the_time_before_assignment_epochs_has_its_own() -> None:
    """KIP-1251 came with Kafka 4.3."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a")
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=8, assigned_partitions=[TopicPartitions(topic_id=T, partitions=[2, 0], assignment_epochs=None)]
    )
    group = group_of(shard_of(CoordinatorRecord(key, value)))
    assert group.members["a"].assigned == {T: {2: 8, 0: 8}}


def test_a_state_of_a_later_kafka_is_kept_apart() -> None:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="a")
    group = group_of(shard_of(CoordinatorRecord(key, ConsumerGroupCurrentMemberAssignmentValue(state=3))))
    assert group.members["a"].state is UNKNOWN


def test_the_last_word_on_a_partition_counts() -> None:
    """The record by which `a` gave it up may be compacted away while the log is read."""
    a, b = (
        ConsumerGroupMember(member_id="a", assigned={T: {0: 1}}),
        ConsumerGroupMember(member_id="b", assigned={T: {0: 2}}),
    )
    shard = shard_of(assignment_record(GROUP, a), assignment_record(GROUP, b))
    assert group_of(shard).owner_of(T, 0) == "b"
    newest = assignment_record(GROUP, ConsumerGroupMember(member_id="a", assigned={T: {1: 3}}))
    shard.replay(newest.key, newest.value)
    assert [group_of(shard).owner_of(T, each) for each in range(2)] == ["b", "a"]


def test_what_older_versions_wrote_of_topics_goes() -> None:
    """Kafka 4.0 kept the partitions of a group's topics in a record (KIP-1101)."""
    member = ConsumerGroupMember(member_id="a", rebalance_timeout_ms=1, subscribed_topic_names=("events",))
    key = ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    shard = shard_of(
        group_epoch_record(GROUP, 3, 0),
        CoordinatorRecord(key, ConsumerGroupPartitionMetadataValue()),
        member_record(GROUP, member),
    )
    result = beat(shard, "a", 0, rebalance_timeout_ms=1, subscribed_topic_names=["events"], topic_partitions=[])
    assert [record.key for record in result.records if record.value is None] == [key]
    assert group_of(shard).group_epoch == 4, "the hash was not there yet"
    assert not group_of(shard).has_partition_metadata_record


def test_a_group_that_came_back_begins_with_the_epochs_of_a_new_one() -> None:
    """A load that compaction overtook does not see the tombstone of the group, and sees that of its target's epoch."""
    before = [group_epoch_record(GROUP, 7, 0), target_epoch_record(GROUP, 7, 1)]
    tombstones = shard_of(*before).groups[GROUP].tombstones()
    left = [record for record in tombstones if not isinstance(record.key, ConsumerGroupMetadataKey)]
    again = group_of(shard_of(*before, *left, group_epoch_record(GROUP, 2, 0)))
    assert (again.group_epoch, again.assignment_epoch) == (2, ConsumerGroup(GROUP).assignment_epoch)


@pytest.mark.parametrize("tombstone", list(ConsumerGroup(GROUP).tombstones()), ids=repr)
def test_tombstones_of_what_is_not_there_are_passed_over(tombstone: CoordinatorRecord) -> None:
    assert shard_of(tombstone).groups == {}


def test_a_group_with_members_of_the_old_protocol_takes_no_records_of_the_new() -> None:
    member = MemberMetadata(member_id="a", client_id="a", client_host="/", session_timeout=1)
    value = GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", leader="a", members=[member])
    shard = shard_of(CoordinatorRecord(GroupMetadataKey(group=GROUP), value))
    record = group_epoch_record(GROUP, 3, 0)
    with pytest.raises(BadRecord, match="classic"):
        shard.replay(record.key, record.value)


def test_a_group_does_not_go_before_its_members() -> None:
    shard = shard_of(member_record(GROUP, ConsumerGroupMember(member_id="a")))
    with pytest.raises(BadRecord, match="members"):
        shard.replay(ConsumerGroupMetadataKey(group_id=GROUP), None)
    assert group_of(shard).members
