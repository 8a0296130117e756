"""The records that a consumer group (KIP-848) lives by, and what they do to the groups of a shard.

A change is made by appending its record and applying it at once, so that a group that is read back is the group that
was. The model is `GroupCoordinatorRecordHelpers` of Kafka, and the replaying half of its `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from pykbroker.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from pykbroker.state_machine import BadRecord

from ..classic.classic_group import ClassicGroup
from ..common.context import Step
from ..common.records import CoordinatorRecord
from .consumer_group import NO_EPOCH, ConsumerGroup, ResolvedRegularExpression, TargetAssignment
from .consumer_member import STATIC_LEAVING_EPOCH, ConsumerMember
from .group_types import Group, find_consumer

ConsumerRecordKey: TypeAlias = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)

GREATEST_EPOCH: Final = 2**30

# Records of changes


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """What the member said of itself."""
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.metadata_value())


def assignment_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """What the member has."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.assignment_value())


def target_record(group_id: str, member_id: str, target: TargetAssignment) -> CoordinatorRecord:
    """What the member should have."""
    partitions = [TopicPartition(topic_id=topic_id, partitions=sorted(each)) for topic_id, each in target.items()]
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(topic_partitions=partitions),
    )


def target_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
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


def member_tombstones(group_id: str, member_id: str) -> Iterator[CoordinatorRecord]:
    """In this order; a member whose assignment is still there is not allowed to go."""
    yield CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    yield target_tombstone(group_id, member_id)
    yield CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def group_tombstones(group: ConsumerGroup) -> Iterator[CoordinatorRecord]:
    """The group with all of its members."""
    by_member = [list(member_tombstones(group.group_id, member_id)) for member_id in group.members]
    assignments, targets, members = zip(*by_member, strict=True) if by_member else ((), (), ())
    yield from assignments
    yield from targets
    yield CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group.group_id), None)
    yield from members
    for expression in group.resolved_regexes:
        yield regex_record(group.group_id, expression, None)
    yield partition_metadata_tombstone(group.group_id)
    yield CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group.group_id), None)


# What records do


class ConsumerRecords:
    """groups: the shard's, shared with it."""

    def __init__(self, groups: dict[str, Group]) -> None:
        self._groups = groups

    def change(self, record: CoordinatorRecord, step: Step) -> None:
        """Writes the record down, and does what it says."""
        step.append(record)
        self._apply(record.key, record.value)

    def replay(self, key: object, value: object) -> None:
        """What was read back. Raises BadRecord, and the groups are as they were."""
        _check(value)
        self._apply(key, value)

    def _apply(self, key: object, value: object) -> None:
        match key, value:
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
                group = self._group(key.group_id)
                group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
            case ConsumerGroupMetadataKey(), None:
                self._remove_group(key.group_id)
            case ConsumerGroupPartitionMetadataKey(), ConsumerGroupPartitionMetadataValue() | None:
                self._replay_partition_metadata(key, value)
            case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
                group = self._group(key.group_id)
                group.put(_member(group, key.member_id).with_metadata(value))
            case ConsumerGroupCurrentMemberAssignmentKey(), ConsumerGroupCurrentMemberAssignmentValue():
                group = self._group(key.group_id)
                group.put(_member(group, key.member_id).with_assignment(value))
            case ConsumerGroupTargetAssignmentMemberKey(), ConsumerGroupTargetAssignmentMemberValue():
                target = {bytes(each.topic_id): frozenset(each.partitions) for each in value.topic_partitions}
                self._group(key.group_id).target_assignment[key.member_id] = target
            case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue():
                group = self._group(key.group_id)
                group.assignment_epoch = value.assignment_epoch
                group.assignment_timestamp_ms = value.assignment_timestamp
            case ConsumerGroupRegularExpressionKey(), ConsumerGroupRegularExpressionValue():
                resolved = ResolvedRegularExpression(frozenset(value.topics), value.version, value.timestamp)
                self._group(key.group_id).resolved_regexes[key.regular_expression] = resolved
            case _, None:
                self._replay_tombstone_of_part(key)
            case _:
                raise AssertionError(f"{type(key).__name__} with {type(value).__name__}")

    def _replay_tombstone_of_part(self, key: object) -> None:
        """What is not there needs no removing: compaction may have left the tombstone alone."""
        group = find_consumer(self._groups, getattr(key, "group_id", ""))
        if group is None:
            return
        match key:
            case ConsumerGroupMemberMetadataKey():
                group.remove(key.member_id)
            case ConsumerGroupCurrentMemberAssignmentKey():
                if key.member_id in group.members:
                    group.put(group.members[key.member_id].without_assignment())
            case ConsumerGroupTargetAssignmentMemberKey():
                group.target_assignment.pop(key.member_id, None)
            case ConsumerGroupTargetAssignmentMetadataKey():
                group.assignment_epoch, group.assignment_timestamp_ms = NO_EPOCH, 0
            case ConsumerGroupRegularExpressionKey():
                group.resolved_regexes.pop(key.regular_expression, None)
            case _:
                raise AssertionError(f"a tombstone of {type(key).__name__}")

    def _replay_partition_metadata(
        self, key: ConsumerGroupPartitionMetadataKey, value: ConsumerGroupPartitionMetadataValue | None
    ) -> None:
        """Older than the hash that says the same (KIP-1101): only that it is there matters, so that it can go."""
        if value is not None:
            self._group(key.group_id).has_partition_metadata_record = True
        elif (group := find_consumer(self._groups, key.group_id)) is not None:
            group.has_partition_metadata_record = False

    def _group(self, group_id: str) -> ConsumerGroup:
        """The group that a record belongs to. Offsets that were read before it made a group for their own sake."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if isinstance(group, ClassicGroup) and not group.is_simple:
            raise BadRecord(f"group {group_id} is a classic group")
        group = self._groups[group_id] = ConsumerGroup(group_id)
        return group

    def _remove_group(self, group_id: str) -> None:
        group = find_consumer(self._groups, group_id)
        if group is None:
            return
        if group.members:
            raise BadRecord(f"the tombstone of group {group_id}, which has members")
        del self._groups[group_id]


def _check(value: object) -> None:
    """What every record of a coordinator holds to, and what the rules rely on."""
    match value:
        case ConsumerGroupMetadataValue():
            _check_epoch(value.epoch, 0)
        case ConsumerGroupTargetAssignmentMetadataValue():
            _check_epoch(value.assignment_epoch, NO_EPOCH)
        case ConsumerGroupTargetAssignmentMemberValue():
            _check_partitions(value.topic_partitions)
        case ConsumerGroupCurrentMemberAssignmentValue():
            _check_epoch(value.member_epoch, STATIC_LEAVING_EPOCH)
            _check_partitions(value.assigned_partitions)
            _check_partitions(value.partitions_pending_revocation)


def _check_epoch(epoch: int, least: int) -> None:
    """Whoever wrote another did not count: the next one would not be a number that can be written."""
    if not least <= epoch < GREATEST_EPOCH:
        raise BadRecord(f"there is no epoch {epoch}")


def _check_partitions(topics: Sequence[TopicPartition | TopicPartitions]) -> None:
    if any(min(topic.partitions, default=0) < 0 for topic in topics):
        raise BadRecord("a partition has a number below zero")


def _member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or ConsumerMember(member_id=member_id)
