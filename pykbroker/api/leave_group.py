"""LeaveGroup (key 13): leave a group, or remove members from it.

Served are versions 0 to 5: 3 brought several members at once (KIP-345), 5 reasons (KIP-800).
"""

from __future__ import annotations

from copy import copy

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.groups import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions

from .group_requests import check_group, submit

MEMBERS_AT_ONCE = 200

_MEMBERS_SINCE = 3
_STEPS_OF_MEMBER = 10


@handles(LeaveGroupRequest, needs=names((Operation.READ, ResourceType.GROUP)))
async def leave_group(context: RequestContext[Broker], request: LeaveGroupRequest) -> LeaveGroupResponse:
    try:
        check_group(context, Operation.READ, request.group_id)
    except ApiError as error:
        return LeaveGroupResponse(error_code=error.code)
    leaves_alone = context.header.api_version < _MEMBERS_SINCE
    if leaves_alone:
        request.members = [MemberIdentity(member_id=request.member_id)]
    response = await _leave(context, request)
    if leaves_alone:
        of_member = response.members[0].error_code if response.members else ErrorCode.NONE
        return LeaveGroupResponse(error_code=response.error_code or of_member)
    return response


async def _leave(context: RequestContext[Broker], request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Some members at a time, as if several requests had come. Where a later one is refused the first members are gone
    all the same; who asks again hears that nobody knows them."""
    response = LeaveGroupResponse()
    for members in portions(request.members, MEMBERS_AT_ONCE) if request.members else [request.members]:
        piece = copy(request)
        piece.members = list(members)
        try:
            left: LeaveGroupResponse = await submit(context, request.group_id, piece)
        except ApiError as error:
            return LeaveGroupResponse(error_code=error.code)
        if left.error_code:
            return left
        response.members += left.members
        await context.turn.took(len(members) * _STEPS_OF_MEMBER)
    return response
