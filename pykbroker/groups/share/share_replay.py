"""Replay: the changes that the records of a share group make to the groups of a shard.

A change is made by appending its record and applying it at once, so that a group that is read back is the group that
was. The model is the replaying half of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pykbroker.protocol.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
    TopicPartitionsInfo,
)
from pykbroker.state_machine import BadRecord

from ..classic.classic_group import ClassicGroup
from ..common.context import Step
from ..common.group import Group
from ..common.records import CoordinatorRecord
from .share_group import FIRST_EPOCH, ShareGroup, find_share
from .share_group_member import LEAVING_EPOCH, ShareGroupMember
from .state_partitions import StatePartitions

GREATEST_EPOCH: Final = 2**30
NO_EPOCH: Final = -1


class ShareReplay:
    """The replay applies the records of share groups.

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
            case ShareGroupMetadataKey(), ShareGroupMetadataValue():
                group = self._group(key.group_id)
                group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
            case ShareGroupMetadataKey(), None:
                self._remove_group(key.group_id)
            case ShareGroupMemberMetadataKey(), ShareGroupMemberMetadataValue():
                group = self._group(key.group_id)
                group.put(_member(group, key.member_id).with_metadata(value))
            case ShareGroupCurrentMemberAssignmentKey(), ShareGroupCurrentMemberAssignmentValue():
                group = self._group(key.group_id)
                group.put(_member(group, key.member_id).with_assignment(value))
            case ShareGroupTargetAssignmentMemberKey(), ShareGroupTargetAssignmentMemberValue():
                target = {bytes(each.topic_id): frozenset(each.partitions) for each in value.topic_partitions}
                self._group(key.group_id).put_target(key.member_id, target)
            case ShareGroupTargetAssignmentMetadataKey(), ShareGroupTargetAssignmentMetadataValue():
                group = self._group(key.group_id)
                group.assignment_epoch = value.assignment_epoch
                group.assignment_timestamp_ms = value.assignment_timestamp
            case ShareGroupStatePartitionMetadataKey(), ShareGroupStatePartitionMetadataValue():
                self._group(key.group_id).put_states(StatePartitions.of_record(value))
            case _, None:
                self._apply_tombstone_of_part(key)
            case _:
                raise AssertionError(f"{type(key).__name__} with {type(value).__name__}")

    def _apply_tombstone_of_part(self, key: object) -> None:
        """Ignore a tombstone of what is not there: compaction may have removed all that was before it."""
        group = find_share(self._groups, getattr(key, "group_id", ""))
        if group is None:
            return
        match key:
            case ShareGroupMemberMetadataKey():
                group.remove(key.member_id)
            case ShareGroupCurrentMemberAssignmentKey():
                if key.member_id in group.members:
                    group.put(group.members[key.member_id].without_assignment())
            case ShareGroupTargetAssignmentMemberKey():
                group.put_target(key.member_id, None)
            case ShareGroupTargetAssignmentMetadataKey():
                group.assignment_epoch, group.assignment_timestamp_ms = FIRST_EPOCH, 0  # as in a new group
            case ShareGroupStatePartitionMetadataKey():
                group.put_states(None)
            case _:
                raise AssertionError(f"a tombstone of {type(key).__name__}")

    def _group(self, group_id: str) -> ShareGroup:
        """The group that a record belongs to. A simple classic group, which offsets that were read before it have made,
        gives way. Raises BadRecord where the id is another group's."""
        group = self._groups.get(group_id)
        if isinstance(group, ShareGroup):
            return group
        if group is not None and not (isinstance(group, ClassicGroup) and group.is_simple):
            raise BadRecord(f"group {group_id} is a {group.type.value} group")
        group = self._groups[group_id] = ShareGroup(group_id)
        return group

    def _remove_group(self, group_id: str) -> None:
        group = find_share(self._groups, group_id)
        if group is None:
            return
        if group.members:
            raise BadRecord(f"the tombstone of group {group_id}, which has members")
        del self._groups[group_id]


def _check(value: object) -> None:
    """Every record that a coordinator writes holds to these rules, and the other rules rely on them."""
    match value:
        case ShareGroupMetadataValue():
            _check_epoch(value.epoch, 0)
        case ShareGroupTargetAssignmentMetadataValue():
            _check_epoch(value.assignment_epoch, NO_EPOCH)
        case ShareGroupTargetAssignmentMemberValue():
            _check_partitions(value.topic_partitions)
        case ShareGroupCurrentMemberAssignmentValue():
            _check_epoch(value.member_epoch, LEAVING_EPOCH)
            _check_partitions(value.assigned_partitions)
        case ShareGroupStatePartitionMetadataValue():
            _check_partitions(value.initializing_topics)
            _check_partitions(value.initialized_topics)


def _check_epoch(epoch: int, least: int) -> None:
    """Epochs are counted up from 0, so none comes near the largest int32, whose successor could not be written."""
    if not least <= epoch < GREATEST_EPOCH:
        raise BadRecord(f"there is no epoch {epoch}")


def _check_partitions(topics: Sequence[TopicPartition | TopicPartitions | TopicPartitionsInfo]) -> None:
    if any(min(topic.partitions, default=0) < 0 for topic in topics):
        raise BadRecord("a partition has a number below zero")


def _member(group: ShareGroup, member_id: str) -> ShareGroupMember:
    return group.members.get(member_id) or ShareGroupMember(member_id=member_id)
