"""Replay: the changes that the records of a consumer group make to the groups of a shard.

A change is made by appending its record and applying it at once, so that a group that is read back is the group that
was. The model is the replaying half of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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
from ..common.group import Group
from ..common.records import CoordinatorRecord
from .consumer_group import FIRST_EPOCH, NO_EPOCH, ConsumerGroup, find_consumer
from .consumer_group_member import STATIC_LEAVING_EPOCH, ConsumerGroupMember
from .resolved_regular_expression import ResolvedRegularExpression

GREATEST_EPOCH: Final = 2**30


class ConsumerReplay:
    """The replay applies the records of consumer groups.

    groups: the shard's groups of all types, shared with it.
    """

    def __init__(self, groups: dict[str, Group]) -> None:
        self._groups = groups

    def change(self, record: CoordinatorRecord, step: Step) -> None:
        """Append the record to the step, and apply it."""
        step.append(record)
        self._apply(record.key, record.value)

    def replay(self, key: object, value: object) -> None:
        """Apply a record that was read back. Raises BadRecord, and changes nothing then."""
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
        """Ignore a tombstone of what is not there: compaction may have removed all that was before it."""
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
                group.assignment_epoch, group.assignment_timestamp_ms = FIRST_EPOCH, 0  # as in a new group
            case ConsumerGroupRegularExpressionKey():
                group.resolved_regexes.pop(key.regular_expression, None)
            case _:
                raise AssertionError(f"a tombstone of {type(key).__name__}")

    def _replay_partition_metadata(
        self, key: ConsumerGroupPartitionMetadataKey, value: ConsumerGroupPartitionMetadataValue | None
    ) -> None:
        """Note whether the record exists. The metadata hash has replaced it (KIP-1101), so it is to be deleted."""
        if value is not None:
            self._group(key.group_id).has_partition_metadata_record = True
        elif (group := find_consumer(self._groups, key.group_id)) is not None:
            group.has_partition_metadata_record = False

    def _group(self, group_id: str) -> ConsumerGroup:
        """The group that a record belongs to. A simple classic group, which offsets that were read before it have made,
        gives way. Raises BadRecord where the id is another classic group's."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is not None and not (isinstance(group, ClassicGroup) and group.is_simple):
            raise BadRecord(f"group {group_id} is a {group.type.value} group")
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
    """Every record that a coordinator writes holds to these rules, and the other rules rely on them."""
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
    """Epochs are counted up from 0, so none comes near the largest int32, whose successor could not be written."""
    if not least <= epoch < GREATEST_EPOCH:
        raise BadRecord(f"there is no epoch {epoch}")


def _check_partitions(topics: Sequence[TopicPartition | TopicPartitions]) -> None:
    if any(min(topic.partitions, default=0) < 0 for topic in topics):
        raise BadRecord("a partition has a number below zero")


def _member(group: ConsumerGroup, member_id: str) -> ConsumerGroupMember:
    return group.members.get(member_id) or ConsumerGroupMember(member_id=member_id)
