"""The records of a consumer group (KIP-848). The model is Kafka's `GroupCoordinatorRecordHelpers`.

What a record does to the groups of a shard is in `consumer_replay`.
"""

from __future__ import annotations

from typing import Final

from pykbroker.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
)

from ..assignors.model import Assignment
from ..common.records import CoordinatorRecord
from ..modern.modern_records import ModernRecords
from .consumer_group_member import ConsumerGroupMember
from .resolved_regular_expression import ResolvedRegularExpression


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def regex_record(group_id: str, expression: str, resolved: ResolvedRegularExpression | None) -> CoordinatorRecord:
    value = None
    if resolved is not None:
        value = ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
        )
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression), value)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def _target_value(target: Assignment) -> ConsumerGroupTargetAssignmentMemberValue:
    partitions = [TopicPartition(topic_id=topic_id, partitions=sorted(each)) for topic_id, each in target.items()]
    return ConsumerGroupTargetAssignmentMemberValue(topic_partitions=partitions)


RECORDS: Final[ModernRecords[ConsumerGroupMember, Assignment]] = ModernRecords(
    group_key=ConsumerGroupMetadataKey,
    member_key=ConsumerGroupMemberMetadataKey,
    assignment_key=ConsumerGroupCurrentMemberAssignmentKey,
    target_key=ConsumerGroupTargetAssignmentMemberKey,
    target_epoch_key=ConsumerGroupTargetAssignmentMetadataKey,
    target_epoch_value=ConsumerGroupTargetAssignmentMetadataValue,
    target_value=_target_value,
)
"""The records that groups of all new protocols have."""

assignment_record = RECORDS.assignment
group_tombstone = RECORDS.group_tombstone
member_record = RECORDS.member
member_tombstones = RECORDS.member_tombstones
target_epoch_record = RECORDS.target_epoch
target_record = RECORDS.target
target_tombstone = RECORDS.target_tombstone
