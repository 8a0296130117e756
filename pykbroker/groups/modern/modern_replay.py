"""Replay: the changes that the records of groups of one new protocol make to the groups of a shard.

A change is made by appending its record and applying it at once, so that a group that is read back is the group that
was. The model is the replaying half of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from pykbroker.state_machine import BadRecord, CauseKind

from ..classic.classic_group import ClassicGroup
from ..common.context import Step
from ..common.group import Group
from ..common.records import CoordinatorRecord
from .modern_group import FIRST_EPOCH, NO_EPOCH, ModernGroup, TargetT, find_group
from .modern_member import MemberT
from .modern_records import ModernRecords

GREATEST_EPOCH: Final = 2**30

GroupT = TypeVar("GroupT", bound=ModernGroup[Any, Any])

Change: TypeAlias = Callable[[Any, Any], None]
"""A change by a key and a value. The value is of the type that goes with the key (`common.records.decode_record`)."""


class Partitioned(Protocol):
    """The field that all structs have that name partitions of something."""

    partitions: list[int]


class ModernReplay(ABC, Generic[GroupT, MemberT, TargetT]):
    """The replay applies the records of groups of one type.

    groups: the shard's groups of all types, shared with it. least_member_epoch: the epoch of a member that is furthest
    below zero.
    """

    kind: type[GroupT]
    least_member_epoch: int

    def __init__(self, groups: dict[str, Group], records: ModernRecords[MemberT, TargetT]) -> None:
        self._groups: dict[str, Any] = groups
        self.records = records
        self._changes: dict[object, Change] = {
            records.group_key: self._put_metadata,
            records.member_key: self._put_member,
            records.assignment_key: self._put_assignment,
            records.target_key: self._put_target,
            records.target_epoch_key: self._put_target_epoch,
        }
        """By the type of the key: what a record with a value changes."""
        self._removals: dict[object, Change] = {
            records.member_key: lambda group, key: group.remove(key.member_id),
            records.assignment_key: self._remove_assignment,
            records.target_key: lambda group, key: group.remove_target(key.member_id),
            records.target_epoch_key: self._remove_target_epoch,
        }
        """By the type of the key: what a tombstone changes in a group."""

    @abstractmethod
    def _new_group(self, group_id: str) -> GroupT: ...

    @abstractmethod
    def _new_member(self, member_id: str) -> MemberT: ...

    @abstractmethod
    def _target_of(self, value: Any) -> TargetT:
        """The target assignment of a member, as its record has it."""

    @abstractmethod
    def _partitions_of(self, value: Any) -> Iterable[Sequence[Partitioned]]:
        """All structs of a record that name partitions."""

    def change(self, record: CoordinatorRecord, step: Step) -> None:
        """Append the record to the step, and apply it."""
        step.append(record)
        self._apply(record.key, record.value)

    def begin_epoch(self, group: GroupT, record: CoordinatorRecord, step: Step) -> None:
        """Raise the group's epoch by its record, so that a new target assignment is computed."""
        self.change(record, step)
        step.because(group.group_id, f"epoch {group.group_epoch} begins", CauseKind.REBALANCE)

    def replay(self, key: object, value: object) -> None:
        """Apply a record that was read back. Raises BadRecord, and changes nothing then."""
        if value is not None:
            self._check(type(key), value)
        self._apply(key, value)

    def _apply(self, key: Any, value: object) -> None:
        kind: object = type(key)
        if value is not None:
            self._changes[kind](key, value)
        elif kind is self.records.group_key:
            self._remove_group(key.group_id)
        else:
            group = self.find(key.group_id)
            # Compaction may have removed all that was before a tombstone.
            if group is not None:
                self._removals[kind](group, key)

    def find(self, group_id: str) -> GroupT | None:
        return find_group(self._groups, group_id, self.kind)

    # Changes

    def _put_metadata(self, key: Any, value: Any) -> None:
        group = self._group(key.group_id)
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash

    def _put_member(self, key: Any, value: Any) -> None:
        group = self._group(key.group_id)
        group.put(self._member(group, key.member_id).with_metadata(value))

    def _put_assignment(self, key: Any, value: Any) -> None:
        group = self._group(key.group_id)
        group.put(self._member(group, key.member_id).with_assignment(value))

    def _member(self, group: GroupT, member_id: str) -> MemberT:
        member: MemberT | None = group.members.get(member_id)
        return self._new_member(member_id) if member is None else member

    def _put_target(self, key: Any, value: Any) -> None:
        self._group(key.group_id).put_target(key.member_id, self._target_of(value))

    def _put_target_epoch(self, key: Any, value: Any) -> None:
        group = self._group(key.group_id)
        group.assignment_epoch, group.assignment_timestamp_ms = value.assignment_epoch, value.assignment_timestamp

    def _remove_assignment(self, group: GroupT, key: Any) -> None:
        if key.member_id in group.members:
            group.put(group.members[key.member_id].without_assignment())

    def _remove_target_epoch(self, group: GroupT, key: Any) -> None:
        group.assignment_epoch, group.assignment_timestamp_ms = FIRST_EPOCH, 0  # as in a new group

    def _group(self, group_id: str) -> GroupT:
        """The group that a record belongs to. A simple classic group, which offsets that were read before it have made,
        gives way. Raises BadRecord where the id is that of a group of another type."""
        group = self._groups.get(group_id)
        if isinstance(group, self.kind):
            return group
        if group is not None and not (isinstance(group, ClassicGroup) and group.is_simple):
            raise BadRecord(f"group {group_id} is a {group.type.value} group")
        new = self._groups[group_id] = self._new_group(group_id)
        return new

    def _remove_group(self, group_id: str) -> None:
        group = self.find(group_id)
        if group is None:
            return
        if group.members:
            raise BadRecord(f"the tombstone of group {group_id}, which has members")
        del self._groups[group_id]

    # Rules

    def _check(self, kind: object, value: Any) -> None:
        """Every record that a coordinator writes holds to these rules, and the other rules rely on them."""
        records = self.records
        if kind is records.group_key:
            check_epoch(value.epoch, 0)
        elif kind is records.target_epoch_key:
            check_epoch(value.assignment_epoch, NO_EPOCH)
        elif kind is records.assignment_key:
            check_epoch(value.member_epoch, self.least_member_epoch)
        for structs in self._partitions_of(value):
            if any(min(each.partitions, default=0) < 0 for each in structs):
                raise BadRecord("a partition has a number below zero")


def check_epoch(epoch: int, least: int) -> None:
    """Epochs are counted up from 0, so none comes near the largest int32, whose successor could not be written.

    Raises BadRecord.
    """
    if not least <= epoch < GREATEST_EPOCH:
        raise BadRecord(f"there is no epoch {epoch}")
