"""Membership of groups of a new protocol: epochs begin, members are forgotten, and have deadlines.

The model is Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from typing import Any, Generic

from pykbroker.protocol.errors import ApiError, ErrorCode

from ..common.context import Step
from ..common.deadlines import Deadlines, RevocationTimeout, SessionTimeout, cancel_timeouts_of_member
from .committing_group import CommittingGroup, CommittingMember, CommittingMemberT
from .modern_group import ModernGroup, TargetT
from .modern_member import MemberT
from .modern_replay import GroupT, ModernReplay


class ModernMembership(Generic[GroupT, MemberT, TargetT]):
    """The membership of groups of one type."""

    def __init__(self, records: ModernReplay[GroupT, MemberT, TargetT], deadlines: Deadlines) -> None:
        self._records = records
        self._deadlines = deadlines

    def forget_member(self, group: GroupT, member_id: str, step: Step) -> None:
        """Take the member and all that it had out of the group."""
        for tombstone in self._records.records.member_tombstones(group.group_id, member_id):
            self._records.change(tombstone, step)
        self.cancel_timeouts(group, member_id)

    # Timeouts

    def keep_session(self, group: GroupT, member_id: str, timeout_ms: int, step: Step) -> None:
        self._deadlines.schedule(SessionTimeout(group.group_id, member_id), step.now_ms + timeout_ms)

    def await_revocation(self, group: GroupT, member: CommittingMember, step: Step) -> None:
        """Start the time in which the member has to give up what it was told to."""
        timeout = RevocationTimeout(group.group_id, member.member_id, member.member_epoch)
        self._deadlines.schedule(timeout, step.now_ms + member.rebalance_timeout_ms)

    def stop_awaiting_revocation(self, group: GroupT, member: CommittingMember) -> None:
        self._deadlines.cancel(RevocationTimeout(group.group_id, member.member_id, member.member_epoch))

    def cancel_timeouts(self, group: GroupT, member_id: str) -> None:
        cancel_timeouts_of_member(self._deadlines, group.group_id, member_id)


def known_member(group: ModernGroup[MemberT, Any], member_id: str) -> MemberT:
    """The member of that id. Raises ApiError where the group has none."""
    member = group.members.get(member_id)
    if member is None:
        words = f"Member {member_id} is not a member of group {group.group_id}."
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, words)
    return member


def known_static_member(
    group: CommittingGroup[CommittingMemberT, Any], member_id: str, instance_id: str
) -> CommittingMemberT:
    """The static member of that instance id, if the member id is its own. Raises ApiError."""
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


def unreleased(owner: CommittingMember, member_id: str, instance_id: str) -> ApiError:
    """The error for a member that joins with the instance id of another that is there."""
    return ApiError(
        ErrorCode.UNRELEASED_INSTANCE_ID,
        f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
        f"id is owned by {owner.member_id} member.",
    )
