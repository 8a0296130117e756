"""One group of a new protocol: its epochs, its members, and what each of them should have.

Three numbers follow each other. The group epoch rises whenever a member comes, changes or leaves, and when the group's
topics change. The assignment epoch is the group epoch for which the target assignment was computed. A member's epoch
catches up with the assignment epoch by the member's own heartbeats. None of them ever falls. The model is Kafka's
`ModernGroup`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Final, Generic, Self, TypeVar

from ..common.group import Group
from .modern_member import MemberT

TargetT = TypeVar("TargetT")
KindT = TypeVar("KindT")

NO_EPOCH: Final = -1
FIRST_EPOCH: Final = 1
"""The epoch of a group without members; 0 is the epoch that a joining member sends."""


class Incarnation:
    """The incarnation tells a group from earlier and later groups of the same id. A copy of a group has the same."""


class ModernGroup(Generic[MemberT, TargetT]):
    """A group of members that are values: a change puts another value in a member's place.

    target_assignment: what each member should have. seen_topic_change: the number of the newest topic change that the
    group has looked at (`common.topic_changes`).
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.incarnation = Incarnation()
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, MemberT] = {}
        self.target_assignment: dict[str, TargetT] = {}
        self.seen_topic_change = 0

    def copy(self) -> Self:
        """A group that no later change reaches. Members and assignments are values."""
        other = copy.copy(self)
        other.members = dict(self.members)
        other.target_assignment = dict(self.target_assignment)
        return other

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def has_pending_members(self) -> bool:
        """A member brings its own id, or is given one as it joins."""
        return False

    def put(self, member: MemberT) -> None:
        """Add the member, or replace the value that the group had of it."""
        self.members[member.member_id] = member

    def remove(self, member_id: str) -> None:
        self.members.pop(member_id, None)

    def put_target(self, member_id: str, target: TargetT) -> None:
        self.target_assignment[member_id] = target

    def remove_target(self, member_id: str) -> None:
        self.target_assignment.pop(member_id, None)


def find_group(groups: Mapping[str, Group], group_id: str, kind: type[KindT]) -> KindT | None:
    """The group of that id and type. None where there is none, or one of another type."""
    group = groups.get(group_id)
    return group if isinstance(group, kind) else None
