"""Records in orders that no coordinator writes: compaction took what stood between them (KAFKA-20254)."""

from __future__ import annotations

from random import Random

from pykbroker.groups.classic.classic_group import ClassicGroup
from pykbroker.groups.common.config import GroupConfig
from pykbroker.groups.common.records import group_metadata_record, offset_commit_record
from pykbroker.groups.consumer.consumer_group import ConsumerGroup
from pykbroker.groups.consumer.consumer_group_member import ConsumerGroupMember
from pykbroker.groups.consumer.consumer_records import group_epoch_record, member_record
from pykbroker.groups.shard import GroupShard
from pykbroker.protocol.messages.group_records import GroupMetadataValue, MemberMetadata, OffsetCommitValue

GROUP = "g"
COMMIT = offset_commit_record(GROUP, "events", 0, OffsetCommitValue(offset=5, metadata="", commit_timestamp=1))
MEMBER = member_record(GROUP, ConsumerGroupMember(member_id="m", subscribed_topic_names=("events",)))
EPOCH = group_epoch_record(GROUP, 3, 0)
CLASSIC_TOMBSTONE = group_metadata_record(GROUP, None)


def loaded(*records: object) -> GroupShard:
    shard = GroupShard(GroupConfig(), Random(1))
    for record in records:
        shard.replay(record.key, record.value)  # type: ignore[attr-defined]
    return shard


def test_offsets_may_come_before_the_records_of_their_consumer_group() -> None:
    """The group was a classic one when they were committed, and its tombstone was compacted away."""
    shard = loaded(COMMIT, MEMBER, EPOCH)
    group = shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    assert (list(group.members), group.group_epoch) == (["m"], 3)
    found = shard.offsets.pending.committed_offset(GROUP, "events", 0)
    assert found is not None
    assert found.offset == 5


def test_the_tombstone_of_the_classic_group_that_was_does_not_touch_the_consumer_group_that_is() -> None:
    shard = loaded(MEMBER, EPOCH, CLASSIC_TOMBSTONE)
    group = shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    assert list(group.members) == ["m"]


def test_the_tombstone_of_a_classic_group_deletes_that() -> None:
    member = MemberMetadata(member_id="m", subscription=b"", assignment=b"")
    value = GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", leader="m", members=[member])
    assert isinstance(loaded(group_metadata_record(GROUP, value)).groups[GROUP], ClassicGroup)
    assert not loaded(group_metadata_record(GROUP, value), CLASSIC_TOMBSTONE).groups
