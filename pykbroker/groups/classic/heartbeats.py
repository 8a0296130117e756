"""Heartbeat: a member says that it is alive, and learns whether a rebalance is under way."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.state_machine import Token

from ..common.context import Step
from ..consumer.group_types import Group, find_classic
from .classic_group import PREPARING_REBALANCE
from .rebalance import Rebalance


class Heartbeats:
    def __init__(self, groups: dict[str, Group], rebalance: Rebalance) -> None:
        self._groups = groups
        self._rebalance = rebalance

    def heartbeat(self, request: HeartbeatRequest, token: Token, step: Step) -> None:
        step.answer(token, HeartbeatResponse(error_code=self._heartbeat(request, step)))

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
        self._rebalance.keep_session(group, group.members[request.member_id], step)
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else ErrorCode.NONE
