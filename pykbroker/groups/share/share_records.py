"""The records of a share group (KIP-932). The model is Kafka's `GroupCoordinatorRecordHelpers`.

What a record does to the groups of a shard is in `share_replay`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pykbroker.protocol.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartition,
)

from ..assignors.model import Assignment
from ..common.records import CoordinatorRecord
from .share_group_member import ShareGroupMember
from .state_partitions import StatePartitions


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(ShareGroupMetadataKey(group_id=group_id), value)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ShareGroupMetadataKey(group_id=group_id), None)


def member_record(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """The record of the subscription and the other metadata of a member."""
    key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.metadata_value())


def assignment_record(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """The record of the current assignment of a member."""
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.assignment_value())


def target_record(group_id: str, member_id: str, target: Assignment) -> CoordinatorRecord:
    """The record of the target assignment of a member."""
    partitions = [TopicPartition(topic_id=topic_id, partitions=sorted(each)) for topic_id, each in target.items()]
    return CoordinatorRecord(
        ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ShareGroupTargetAssignmentMemberValue(topic_partitions=partitions),
    )


def target_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


def target_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def state_record(group_id: str, states: StatePartitions) -> CoordinatorRecord:
    """The record of the share partitions whose state is kept."""
    return CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), states.value())


def state_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: str, member_id: str) -> Iterator[CoordinatorRecord]:
    """The records that delete a member, in an order that counts: its assignment has to go first."""
    yield CoordinatorRecord(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    yield target_tombstone(group_id, member_id)
    yield CoordinatorRecord(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)
