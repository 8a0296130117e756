"""A group of a new protocol whose members commit offsets, and give up what other members wait for.

The state of the group is read from its epochs:

    EMPTY        the group has no members
    ASSIGNING    the assignment epoch is behind the group epoch
    RECONCILING  a member is not STABLE in the assignment epoch yet
    STABLE       every member has its part of the target assignment

Who commits says in which epoch it is. A member that is behind its group may not commit for what it gave up.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from pykbroker.protocol.errors import ErrorCode

from .modern_group import ModernGroup, TargetT
from .modern_member import ModernMember

FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCH: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittingMember(ModernMember):
    """A member that may be static (KIP-345), and has a time in which it gives up what it has to."""

    instance_id: str | None = None
    rebalance_timeout_ms: int = -1

    @property
    def uses_classic_protocol(self) -> bool:
        return False

    @abstractmethod
    def is_reconciled_to(self, target_assignment_epoch: int) -> bool: ...


CommittingMemberT = TypeVar("CommittingMemberT", bound=CommittingMember)


class CommittingGroup(ModernGroup[CommittingMemberT, TargetT]):
    """A group whose members commit offsets. static_members: by instance id, the member id."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.static_members: dict[str, str] = {}

    def copy(self) -> Self:
        """A group that no later change reaches."""
        other = super().copy()
        other.static_members = dict(self.static_members)
        return other

    def static_member(self, instance_id: str | None) -> CommittingMemberT | None:
        """The member of that instance id; None where there is none."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    @property
    def is_reconciled(self) -> bool:
        """Tell whether every member has its part of the target assignment."""
        return all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())

    def assignment_epoch_of(self, member: CommittingMemberT, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which the member got what it needs to commit for the partition; None where it does not have
        it."""
        raise NotImplementedError

    def validate_offset_commit(
        self, member_id: str, instance_id: str | None, member_epoch: int, version: int
    ) -> ErrorCode:
        if member_epoch < 0 and self.is_empty:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not member.uses_classic_protocol and version < FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCH:
            return ErrorCode.UNSUPPORTED_VERSION
        return _stale_epoch(member) if member_epoch > member.member_epoch else ErrorCode.NONE

    def validate_txn_offset_commit(self, member_id: str, instance_id: str | None, member_epoch: int) -> ErrorCode:
        """Producers from before KIP-447 do not say for whom they commit, and may do so."""
        if member_epoch < 0 and (self.is_empty or (not member_id and instance_id is None)):
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return _stale_epoch(member) if member_epoch > member.member_epoch else ErrorCode.NONE

    def validate_committed_partitions(
        self, member_id: str, member_epoch: int, partitions: Iterable[tuple[bytes, int]]
    ) -> ErrorCode:
        """A member whose epoch has moved on may still commit for what it kept: the epoch counts in which that was
        assigned to it (KIP-1251)."""
        member = self.members.get(member_id)
        if member is None or member_epoch == member.member_epoch:
            return ErrorCode.NONE
        for topic_id, partition in partitions:
            assigned_in = self.assignment_epoch_of(member, topic_id, partition)
            if assigned_in is None or member_epoch < assigned_in:
                return _stale_epoch(member)
        return ErrorCode.NONE

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Check an OffsetFetch; a request that does not claim to be a member's may read."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_epoch == member.member_epoch else _stale_epoch(member)

    def validate_offset_delete(self) -> ErrorCode:
        return ErrorCode.NONE

    def offset_unused_since_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms


def _stale_epoch(member: CommittingMember) -> ErrorCode:
    return ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
