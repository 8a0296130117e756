"""The records of a group of a new protocol: their kinds, and how they are made.

Groups of all types have a record of the group's epoch, one of the epoch of the target assignment, and three of each
member: what it said of itself, what it has, and what it should have. The model is Kafka's
`GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol

from ..common.records import CoordinatorRecord, RecordKey, RecordValue
from .modern_group import TargetT
from .modern_member import MemberT


class GroupKey(Protocol):
    """A type of keys of records of which a group has one."""

    def __call__(self, *, group_id: str) -> RecordKey: ...


class MemberKey(Protocol):
    """A type of keys of records of which each member has one."""

    def __call__(self, *, group_id: str, member_id: str) -> RecordKey: ...


class TargetEpochValue(Protocol):
    """The type of the values that have the epoch of a target assignment."""

    def __call__(self, *, assignment_epoch: int, assignment_timestamp: int) -> RecordValue: ...


@dataclass(frozen=True, kw_only=True)
class ModernRecords(Generic[MemberT, TargetT]):
    """The kinds of records of one type of group. target_value: the value of the record of a member's target."""

    group_key: GroupKey
    member_key: MemberKey
    assignment_key: MemberKey
    target_key: MemberKey
    target_epoch_key: GroupKey
    target_epoch_value: TargetEpochValue
    target_value: Callable[[TargetT], RecordValue]

    def group_tombstone(self, group_id: str) -> CoordinatorRecord:
        return CoordinatorRecord(self.group_key(group_id=group_id), None)

    def member(self, group_id: str, member: MemberT) -> CoordinatorRecord:
        """The record of what a member said of itself."""
        key = self.member_key(group_id=group_id, member_id=member.member_id)
        return CoordinatorRecord(key, member.metadata_value())

    def assignment(self, group_id: str, member: MemberT) -> CoordinatorRecord:
        """The record of the current assignment of a member."""
        key = self.assignment_key(group_id=group_id, member_id=member.member_id)
        return CoordinatorRecord(key, member.assignment_value())

    def target(self, group_id: str, member_id: str, target: TargetT) -> CoordinatorRecord:
        """The record of the target assignment of a member."""
        key = self.target_key(group_id=group_id, member_id=member_id)
        return CoordinatorRecord(key, self.target_value(target))

    def target_tombstone(self, group_id: str, member_id: str) -> CoordinatorRecord:
        return CoordinatorRecord(self.target_key(group_id=group_id, member_id=member_id), None)

    def target_epoch(self, group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
        """The record of the epoch of the target assignment."""
        value = self.target_epoch_value(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
        return CoordinatorRecord(self.target_epoch_key(group_id=group_id), value)

    def target_epoch_tombstone(self, group_id: str) -> CoordinatorRecord:
        return CoordinatorRecord(self.target_epoch_key(group_id=group_id), None)

    def member_tombstones(self, group_id: str, member_id: str) -> Iterator[CoordinatorRecord]:
        """The records that delete a member, in an order that counts: its assignment has to go first."""
        yield CoordinatorRecord(self.assignment_key(group_id=group_id, member_id=member_id), None)
        yield self.target_tombstone(group_id, member_id)
        yield CoordinatorRecord(self.member_key(group_id=group_id, member_id=member_id), None)

    def tombstones_of_members(self, group_id: str, member_ids: Iterable[str]) -> Iterator[CoordinatorRecord]:
        """The records that delete all members with the target assignment, in Kafka's order."""
        by_member = [list(self.member_tombstones(group_id, member_id)) for member_id in member_ids]
        assignments, targets, members = zip(*by_member, strict=True) if by_member else ((), (), ())
        yield from assignments
        yield from targets
        yield self.target_epoch_tombstone(group_id)
        yield from members
