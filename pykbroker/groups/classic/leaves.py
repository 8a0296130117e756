"""LeaveGroup: one member says goodbye, or an administrator removes several (KIP-345), each with a reason (KIP-800)."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from pykbroker.state_machine import Token

from ..common.context import Step
from ..consumer.group_types import Group, find_classic
from .classic_group import EMPTY, UNKNOWN_MEMBER_ID, ClassicGroup
from .rebalance import Rebalance


class Leaves:
    def __init__(self, groups: dict[str, Group], rebalance: Rebalance) -> None:
        self._groups = groups
        self._rebalance = rebalance

    def leave(self, request: LeaveGroupRequest, token: Token, step: Step) -> None:
        if not request.group_id:
            step.answer(token, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return
        group = find_classic(self._groups, request.group_id)
        if group is None:
            unknown = [_member_response(leaving, ErrorCode.UNKNOWN_MEMBER_ID) for leaving in request.members]
            step.answer(token, LeaveGroupResponse(members=unknown))
            return
        members = [_member_response(leaving, self._leave(group, leaving, step)) for leaving in request.members]
        step.answer(token, LeaveGroupResponse(members=members))
        gone = [member.member_id or member.group_instance_id or "" for member in members if not member.error_code]
        if group.state is not EMPTY and gone:
            self._rebalance.start_or_complete_join(group, f"{', '.join(gone)} left", step)

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
        self._rebalance.drop_member(group, member_id, step)
        reason = leaving.reason or "no reason given"
        step.because(f"group {group.group_id}: {member_id} left ({reason})")
        return ErrorCode.NONE


def _member_response(leaving: MemberIdentity, error_code: ErrorCode) -> MemberResponse:
    return MemberResponse(
        member_id=leaving.member_id, group_instance_id=leaving.group_instance_id, error_code=error_code
    )
