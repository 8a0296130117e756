"""The classic groups of a shard: SyncGroup, Heartbeat, LeaveGroup, timers and records; the door to this package.

JoinGroup is in `joins`, and the course of a rebalance in `rebalance`. The model is the classic half of Kafka's
`GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest, DescribeGroupsResponse
from pykbroker.protocol.messages.group_records import GroupMetadataKey, GroupMetadataValue
from pykbroker.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from pykbroker.state_machine import CoordinatorContext

from ..common.config import GroupConfig
from ..common.context import Call, Step
from ..common.deadlines import (
    Deadlines,
    InitialDelay,
    MemberRejoinTimeout,
    MemberSyncTimeout,
    RebalanceTimeout,
    RevocationTimeout,
    SessionTimeout,
    StreamsInitialDelay,
    SyncTimeout,
    Timeout,
)
from ..common.group import Group
from .classic_group import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    UNKNOWN_MEMBER_ID,
    ClassicGroup,
    find_classic,
)
from .classic_records import group_from_record
from .descriptions import describe_group
from .joins import Joins
from .rebalance import Rebalance


class ClassicGroups:
    """The classic groups of one shard.

    groups: the shard's groups of all types, shared with it.
    """

    def __init__(self, config: GroupConfig, groups: dict[str, Group], deadlines: Deadlines, rng: Random) -> None:
        self._config = config
        self._groups = groups
        self.rebalance = Rebalance(config, deadlines)
        self.join = Joins(config, groups, deadlines, self.rebalance, rng).join
        self._too_large: list[str] = []

    # SyncGroup

    def sync(self, request: SyncGroupRequest, call: Call) -> None:
        """The leader hands in the assignment, and every member gets its part of it."""
        error_code, group = self._validate_sync(request)
        if group is None or error_code is not ErrorCode.NONE:
            call.answer(SyncGroupResponse(error_code=error_code))
            return
        member = group.members[request.member_id]
        self.rebalance.note_sync(group, member.member_id)
        if group.state is not COMPLETING_REBALANCE:
            call.answer(self.rebalance.sync_answer(group, member))
            return
        if member.awaiting_sync is not None:
            # The member asks again on another connection. Kafka leaves the older request without any answer.
            call.step.answer(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.awaiting_sync = call.token
        if group.leader_id == member.member_id:
            assignments = {entry.member_id: bytes(entry.assignment) for entry in request.assignments}
            self.rebalance.stabilize(group, assignments, call.step)
        else:
            request.assignments = []  # nobody looks at them, and the request may wait for long

    def _validate_sync(self, request: SyncGroupRequest) -> tuple[ErrorCode, ClassicGroup | None]:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID, None
        group = find_classic(self._groups, request.group_id)
        if group is None or group.state is EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID, None
        return _validate_sync_in(group, request), group

    # Heartbeat

    def heartbeat(self, request: HeartbeatRequest, step: Step) -> HeartbeatResponse:
        """Keep the member's session, and tell the member whether a rebalance is under way."""
        return HeartbeatResponse(error_code=self._heartbeat(request, step))

    def _heartbeat(self, request: HeartbeatRequest, step: Step) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = find_classic(self._groups, request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error_code = group.validate_member(request.member_id, request.group_instance_id)
        if error_code is not ErrorCode.NONE:
            return error_code
        if request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        self.rebalance.keep_session(group, group.members[request.member_id], step)
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else ErrorCode.NONE

    def on_offset_commit(self, group_id: str, member_id: str, step: Step) -> None:
        """Keep the member's session: a commit is a sign of life, as a heartbeat is."""
        group = find_classic(self._groups, group_id)
        if group is not None and group.state in (STABLE, PREPARING_REBALANCE) and member_id in group.members:
            self.rebalance.keep_session(group, group.members[member_id], step)

    # LeaveGroup

    def leave(self, request: LeaveGroupRequest, call: Call) -> None:
        """A member leaves, or an administrator removes several (KIP-345), each with a reason (KIP-800)."""
        if not request.group_id:
            call.answer(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return
        group = find_classic(self._groups, request.group_id)
        if group is None:
            unknown = [_member_response(leaving, ErrorCode.UNKNOWN_MEMBER_ID) for leaving in request.members]
            call.answer(LeaveGroupResponse(members=unknown))
            return
        members = [_member_response(leaving, self._leave(group, leaving, call.step)) for leaving in request.members]
        call.answer(LeaveGroupResponse(members=members))
        gone = [member.member_id or member.group_instance_id or "" for member in members if not member.error_code]
        if group.state is not EMPTY and gone:
            self.rebalance.start_or_complete_join(group, f"{', '.join(gone)} left", call.step)

    def _leave(self, group: ClassicGroup, leaving: MemberIdentity, step: Step) -> ErrorCode:
        member_id = leaving.member_id
        if member_id == UNKNOWN_MEMBER_ID:
            # An administrator knows a static member by its instance id only.
            if leaving.group_instance_id not in group.static_members:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = group.static_members[leaving.group_instance_id]
        elif member_id not in group.pending_join_members:
            error_code = group.validate_member(member_id, leaving.group_instance_id)
            if error_code is not ErrorCode.NONE:
                return error_code
        self.rebalance.drop_member(group, member_id, step)
        reason = leaving.reason or "no reason given"
        step.because(group.group_id, f"{member_id} left ({reason})")
        return ErrorCode.NONE

    # Administration

    def describe(self, request: DescribeGroupsRequest, context: CoordinatorContext) -> DescribeGroupsResponse:
        described = [describe_group(self._groups, group_id, context.api_version) for group_id in request.groups]
        return DescribeGroupsResponse(groups=described)

    def close(self, group: ClassicGroup, cause: str, step: Step) -> None:
        """Move an empty group that is being deleted to DEAD. Member ids that were handed out count for nothing
        then."""
        for member_id in list(group.pending_join_members):
            self.rebalance.drop_member(group, member_id, step)
        group.transition_to(DEAD, step.timestamp_ms, cause)

    # Timers

    def expire(self, group: ClassicGroup, timeout: Timeout, step: Step) -> None:
        """Act on a timeout of the group. Those of the consumer protocol are left over from before a migration."""
        match timeout:
            case SessionTimeout():
                self.rebalance.expire_session(group, timeout.member_id, step)
            case InitialDelay():
                self.rebalance.expire_initial_delay(group, timeout, step)
            case RebalanceTimeout():
                self.rebalance.expire_join(group, step)
            case SyncTimeout():
                self.rebalance.expire_sync(group, timeout, step)
            case RevocationTimeout() | MemberRejoinTimeout() | MemberSyncTimeout() | StreamsInitialDelay():
                pass

    def begin_sessions(self, group: ClassicGroup, step: Step) -> Iterator[None]:
        """Give each member of a group that was read back a full session timeout. Yields after each member."""
        for member in group.members.values():
            self.rebalance.keep_session(group, member, step)
            yield
        if self._is_too_large(group):
            self._too_large.append(group.group_id)

    def rebalance_too_large(self, step: Step) -> None:
        """Rebalances groups that were written with more members than `group.max.size` allows today."""
        for group_id in self._too_large:
            group = find_classic(self._groups, group_id)
            if group is not None and self._is_too_large(group):
                self.rebalance.start(group, f"more than group.max.size ({self._config.max_size}) members", step)

    def _is_too_large(self, group: ClassicGroup) -> bool:
        return group.state is STABLE and len(group.members) > self._config.max_size

    # Loading

    def replay(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        """Apply a record that was read back. Raises BadRecord, and changes nothing then."""
        if value is not None:
            self._groups[key.group] = group_from_record(key.group, value)
        elif find_classic(self._groups, key.group) is not None:
            del self._groups[key.group]


def _validate_sync_in(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    error_code = group.validate_member(request.member_id, request.group_instance_id)
    if error_code is not ErrorCode.NONE:
        return error_code
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else ErrorCode.NONE


def _differs(asked: str | None, known: str | None) -> bool:
    """Tell whether protocols differ.

    A member does not say its own before version 5, nor a group in its first rebalance.
    """
    return asked is not None and known is not None and asked != known


def _member_response(leaving: MemberIdentity, error_code: ErrorCode) -> MemberResponse:
    return MemberResponse(
        member_id=leaving.member_id, group_instance_id=leaving.group_instance_id, error_code=error_code
    )
