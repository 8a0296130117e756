"""LeaveGroup (key 13): leave a group, or remove members from it.

Served are versions 0 to 5: 3 brought several members at once (KIP-345), 5 reasons (KIP-800).
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from pykbroker.server.coordinator_driver import CoordinatorRefused
from pykbroker.server.dispatch import RequestContext, handles

from .group_requests import submit

_MEMBERS_SINCE = 3


@handles(LeaveGroupRequest)
async def leave_group(context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    leaves_alone = context.header.api_version < _MEMBERS_SINCE
    if leaves_alone:
        request.members = [MemberIdentity(member_id=request.member_id)]
    try:
        response: LeaveGroupResponse = await submit(context, request.group_id, request)
    except CoordinatorRefused as refused:
        return LeaveGroupResponse(error_code=refused.error_code)
    if leaves_alone:
        of_member = response.members[0].error_code if response.members else ErrorCode.NONE
        return LeaveGroupResponse(error_code=response.error_code or of_member)
    return response
