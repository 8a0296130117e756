"""SyncGroup: the leader hands in the assignment, everyone gets its part of it."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import SyncGroupRequest, SyncGroupResponse
from pykbroker.state_machine import Token

from ..common.context import GroupRequestContext, Step
from ..consumer.group_types import Group, find_classic
from .classic_group import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, ClassicGroup
from .rebalance import Rebalance

FIRST_VERSION_WITH_PROTOCOL = 5


class Syncs:
    def __init__(self, groups: dict[str, Group], rebalance: Rebalance) -> None:
        self._groups = groups
        self._rebalance = rebalance

    def sync(self, request: SyncGroupRequest, token: Token, context: GroupRequestContext, step: Step) -> None:
        error_code, group = self._validate(request, context)
        if group is None or error_code is not ErrorCode.NONE:
            step.answer(token, SyncGroupResponse(error_code=error_code))
            return
        member = group.members[request.member_id]
        self._rebalance.note_sync(group, member.member_id)
        if group.state is not COMPLETING_REBALANCE:
            step.answer(token, self._rebalance.sync_answer(group, member))
            return
        if member.awaiting_sync is not None:
            # The member asks again on another connection. Kafka leaves the older request without any answer.
            step.answer(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.awaiting_sync = token
        if group.leader_id == member.member_id:
            assignments = {entry.member_id: bytes(entry.assignment) for entry in request.assignments}
            self._rebalance.stabilize(group, assignments, step)
        else:
            request.assignments = []  # nobody looks at them, and the request may wait for long

    def _validate(
        self, request: SyncGroupRequest, context: GroupRequestContext
    ) -> tuple[ErrorCode, ClassicGroup | None]:
        has_protocol = request.protocol_type is not None and request.protocol_name is not None
        if context.api_version >= FIRST_VERSION_WITH_PROTOCOL and not has_protocol:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL, None
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID, None
        group = find_classic(self._groups, request.group_id)
        if group is None or group.state is EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID, None
        return self._validate_in(group, request), group

    def _validate_in(self, group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
        error_code = group.validate_member(request.member_id, request.group_instance_id)
        if error_code is not ErrorCode.NONE:
            return error_code
        if request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else ErrorCode.NONE


def _differs(asked: str | None, known: str | None) -> bool:
    """Before version 5 a member does not say; in its first rebalance a group does not know."""
    return asked is not None and known is not None and asked != known
