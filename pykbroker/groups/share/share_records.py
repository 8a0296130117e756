"""The records of a share group (KIP-932). The model is Kafka's `GroupCoordinatorRecordHelpers`.

What a record does to the groups of a shard is in `share_replay`.
"""

from __future__ import annotations

from typing import Final

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
from ..modern.modern_records import ModernRecords
from .share_group_member import ShareGroupMember
from .state_partitions import StatePartitions


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(ShareGroupMetadataKey(group_id=group_id), value)


def state_record(group_id: str, states: StatePartitions) -> CoordinatorRecord:
    """The record of the share partitions whose state is kept."""
    return CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), states.value())


def state_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), None)


def _target_value(target: Assignment) -> ShareGroupTargetAssignmentMemberValue:
    partitions = [TopicPartition(topic_id=topic_id, partitions=sorted(each)) for topic_id, each in target.items()]
    return ShareGroupTargetAssignmentMemberValue(topic_partitions=partitions)


RECORDS: Final[ModernRecords[ShareGroupMember, Assignment]] = ModernRecords(
    group_key=ShareGroupMetadataKey,
    member_key=ShareGroupMemberMetadataKey,
    assignment_key=ShareGroupCurrentMemberAssignmentKey,
    target_key=ShareGroupTargetAssignmentMemberKey,
    target_epoch_key=ShareGroupTargetAssignmentMetadataKey,
    target_epoch_value=ShareGroupTargetAssignmentMetadataValue,
    target_value=_target_value,
)
"""The records that groups of all new protocols have."""

assignment_record = RECORDS.assignment
member_record = RECORDS.member
