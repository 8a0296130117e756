"""DescribeGroups (key 15): state and members of classic groups.

Served are versions 0 to 6: 3 brought authorized operations (KIP-430), 4 static members (KIP-345), 6 an error for
groups that are not there (KIP-1043).
"""

from __future__ import annotations

from collections.abc import Sequence

from pykbroker.protocol.encoded_array import EncodedArray
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from pykbroker.server.coordinator_driver import CoordinatorRefused
from pykbroker.server.dispatch import RequestContext, handles

from .authorized_operations import GROUP_OPERATIONS
from .group_requests import submit

_STEPS_OF_GROUP = 20
_STEPS_OF_MEMBER = 5


@handles(DescribeGroupsRequest)
async def describe_groups(context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """A group that is named twice is described twice, out of the same bytes."""
    groups = EncodedArray(DescribeGroupsResponse, context.header.api_version)
    described: dict[str, Sequence[bytes]] = {}
    for group_id in request.groups:
        if groups.is_too_large:
            groups.add([DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_REQUEST)])
        elif group_id in described:
            groups.add_parts(described[group_id])
        else:
            group = await _describe(context, group_id, request.include_authorized_operations)
            described[group_id] = groups.add([group])
            await context.turn.took(len(group.members) * _STEPS_OF_MEMBER)
        await context.turn.took(_STEPS_OF_GROUP)
    return DescribeGroupsResponse(groups=groups.finish().of(DescribedGroup))


async def _describe(context: RequestContext, group_id: str, with_operations: bool) -> DescribedGroup:
    try:
        response: DescribeGroupsResponse = await submit(context, group_id, DescribeGroupsRequest(groups=[group_id]))
    except CoordinatorRefused as refused:
        return DescribedGroup(group_id=group_id, error_code=refused.error_code)
    (group,) = response.groups
    if with_operations and not group.error_code:
        group.authorized_operations = GROUP_OPERATIONS
    return group
