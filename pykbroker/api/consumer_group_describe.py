"""ConsumerGroupDescribe (key 69): epochs and members of consumer groups, with what they have and should have (KIP-848).

Served are versions 0 and 1: 1 says which protocol a member speaks (KIP-1099).
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from pykbroker.server.coordinator_driver import CoordinatorRefused
from pykbroker.server.dispatch import RequestContext, handles

from .authorized_operations import GROUP_OPERATIONS
from .group_requests import has_consumer_groups, submit


@handles(ConsumerGroupDescribeRequest)
async def consumer_group_describe(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    with_operations = request.include_authorized_operations
    return ConsumerGroupDescribeResponse(
        groups=[await _describe(context, group_id, with_operations) for group_id in request.group_ids]
    )


async def _describe(context: RequestContext, group_id: str, with_operations: bool) -> DescribedGroup:
    if not has_consumer_groups(context):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    asked = ConsumerGroupDescribeRequest(group_ids=[group_id])
    try:
        response: ConsumerGroupDescribeResponse = await submit(context, group_id, asked)
    except CoordinatorRefused as refused:
        return DescribedGroup(group_id=group_id, error_code=refused.error_code)
    (group,) = response.groups
    if with_operations and not group.error_code:
        group.authorized_operations = GROUP_OPERATIONS
    return group
