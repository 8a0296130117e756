"""Replay: the changes that the records of a streams group make to the groups of a shard.

A change is made by appending its record and applying it at once, so that a group that is read back is the group that
was. The model is the replaying half of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pykbroker.protocol.messages.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from pykbroker.state_machine import BadRecord

from ..classic.classic_group import ClassicGroup
from ..common.context import Step
from ..common.group import Group
from ..common.records import CoordinatorRecord
from ..common.topics import TopicsView
from .streams_group import FIRST_EPOCH, StreamsGroup, find_streams
from .streams_group_member import STATIC_LEAVING_EPOCH, StreamsGroupMember
from .tasks import TaskIdsLike, TasksTuple, tasks_of
from .topology import StreamsTopology

GREATEST_EPOCH: Final = 2**30
_NO_EPOCH: Final = -1


class StreamsReplay:
    """The replay applies the records of streams groups.

    groups: the shard's groups of all types, shared with it.
    """

    def __init__(self, groups: dict[str, Group], topics: TopicsView) -> None:
        self._groups = groups
        self._topics = topics

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
            case StreamsGroupMetadataKey(), StreamsGroupMetadataValue():
                group = self._group(key.group_id)
                group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
                group.validated_topology_epoch = value.validated_topology_epoch
                configs = value.last_assignment_configs or ()
                group.last_assignment_configs = {config.key: config.value for config in configs}
            case StreamsGroupMetadataKey(), None:
                self._remove_group(key.group_id)
            case StreamsGroupTopologyKey(), StreamsGroupTopologyValue():
                self._group(key.group_id).topology = StreamsTopology(value)
            case StreamsGroupMemberMetadataKey(), StreamsGroupMemberMetadataValue():
                group = self._group(key.group_id)
                group.put(_member(group, key.member_id).with_metadata(value))
            case StreamsGroupCurrentMemberAssignmentKey(), StreamsGroupCurrentMemberAssignmentValue():
                group = self._group(key.group_id)
                group.put(_member(group, key.member_id).with_assignment(value))
            case StreamsGroupTargetAssignmentMemberKey(), StreamsGroupTargetAssignmentMemberValue():
                self._group(key.group_id).target_assignment[key.member_id] = TasksTuple(
                    tasks_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks)
                )
            case StreamsGroupTargetAssignmentMetadataKey(), StreamsGroupTargetAssignmentMetadataValue():
                group = self._group(key.group_id)
                group.assignment_epoch = value.assignment_epoch
                group.assignment_timestamp_ms = value.assignment_timestamp
            case _, None:
                self._replay_tombstone_of_part(key)
            case _:
                raise AssertionError(f"{type(key).__name__} with {type(value).__name__}")

    def _replay_tombstone_of_part(self, key: object) -> None:
        """Ignore a tombstone of what is not there: compaction may have removed all that was before it."""
        group = find_streams(self._groups, getattr(key, "group_id", ""))
        if group is None:
            return
        match key:
            case StreamsGroupTopologyKey():
                group.topology = None
            case StreamsGroupMemberMetadataKey():
                group.remove(key.member_id)
            case StreamsGroupCurrentMemberAssignmentKey():
                if key.member_id in group.members:
                    group.put(group.members[key.member_id].without_assignment())
            case StreamsGroupTargetAssignmentMemberKey():
                group.target_assignment.pop(key.member_id, None)
            case StreamsGroupTargetAssignmentMetadataKey():
                group.assignment_epoch, group.assignment_timestamp_ms = FIRST_EPOCH, 0  # as in a new group
            case _:
                raise AssertionError(f"a tombstone of {type(key).__name__}")

    def _group(self, group_id: str) -> StreamsGroup:
        """The group that a record belongs to. A simple classic group, which offsets that were read before it have made,
        gives way. Raises BadRecord where the id is that of a group of another type."""
        group = self._groups.get(group_id)
        if isinstance(group, StreamsGroup):
            return group
        if group is not None and not (isinstance(group, ClassicGroup) and group.is_simple):
            raise BadRecord(f"group {group_id} is a {group.type.value} group")
        group = self._groups[group_id] = StreamsGroup(group_id, self._topics)
        return group

    def _remove_group(self, group_id: str) -> None:
        group = find_streams(self._groups, group_id)
        if group is None:
            return
        if group.members:
            raise BadRecord(f"the tombstone of group {group_id}, which has members")
        del self._groups[group_id]


def _check(value: object) -> None:
    """Every record that a coordinator writes holds to these rules, and the other rules rely on them."""
    match value:
        case StreamsGroupMetadataValue():
            _check_epoch(value.epoch, 0)
        case StreamsGroupTargetAssignmentMetadataValue():
            _check_epoch(value.assignment_epoch, _NO_EPOCH)
        case StreamsGroupTopologyValue():
            _check_epoch(value.epoch, 0)
        case StreamsGroupTargetAssignmentMemberValue():
            _check_partitions(value.active_tasks, value.standby_tasks, value.warmup_tasks)
        case StreamsGroupCurrentMemberAssignmentValue():
            _check_epoch(value.member_epoch, STATIC_LEAVING_EPOCH)
            _check_partitions(
                value.active_tasks,
                value.standby_tasks,
                value.warmup_tasks,
                value.active_tasks_pending_revocation,
                value.standby_tasks_pending_revocation,
                value.warmup_tasks_pending_revocation,
            )


def _check_epoch(epoch: int, least: int) -> None:
    """Epochs are counted up from 0, so none comes near the largest int32, whose successor could not be written."""
    if not least <= epoch < GREATEST_EPOCH:
        raise BadRecord(f"there is no epoch {epoch}")


def _check_partitions(*tasks: Sequence[TaskIdsLike]) -> None:
    if any(min(each.partitions, default=0) < 0 for each in _each(tasks)):
        raise BadRecord("a partition has a number below zero")


def _each(tasks: Iterable[Sequence[TaskIdsLike]]) -> Iterable[TaskIdsLike]:
    for some in tasks:
        yield from some


def _member(group: StreamsGroup, member_id: str) -> StreamsGroupMember:
    return group.members.get(member_id) or StreamsGroupMember(member_id=member_id)
