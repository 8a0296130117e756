"""ShareGroupDescribe (key 77): epochs and members of share groups, with what they have (KIP-932).

Served is version 1.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykbroker.groups.common.requests import DescribeShareGroup
from pykbroker.protocol.encoded_array import EncodedArray
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.share_groups import (
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .authorization import authorized_operations, denied
from .described_groups import describe_each
from .group_requests import check_group, submit
from .share_group_requests import has_share_groups

if TYPE_CHECKING:
    from pykbroker.groups.share.share_descriptions import ShareGroupAsOfNow

_HIDDEN_TOPICS = "The group has topics that the client may not describe."


@handles(
    ShareGroupDescribeRequest,
    needs=names((Operation.DESCRIBE, ResourceType.GROUP), (Operation.DESCRIBE, ResourceType.TOPIC)),
)
async def share_group_describe(
    context: RequestContext[Broker], request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    groups = EncodedArray(ShareGroupDescribeResponse, context.header.api_version)
    describe = partial(_describe, context, with_operations=request.include_authorized_operations)
    await describe_each(context, request.group_ids, groups, describe, _beyond)
    return ShareGroupDescribeResponse(groups=groups.finish().of(DescribedGroup))


def _beyond(group_id: str) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_REQUEST)


async def _describe(context: RequestContext[Broker], group_id: str, with_operations: bool) -> DescribedGroup:
    if not has_share_groups(context):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        check_group(context, Operation.DESCRIBE, group_id)
        if not group_id:
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
        found: ShareGroupAsOfNow = await submit(context, group_id, DescribeShareGroup(group_id=group_id))
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    group = found.group
    try:
        group.members = await _members(context, found)
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    if with_operations and not group.error_code:
        group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group_id)
    return group


async def _members(context: RequestContext[Broker], found: ShareGroupAsOfNow) -> list[Member]:
    """Encode the members at once: they may be too many objects.

    Raises ApiError where a member has a topic that the client may not describe.
    """
    members = EncodedArray(ShareGroupDescribeResponse, context.header.api_version)
    for member_id in await context.turn.through(found.member_ids()):
        member = found.describe_member(member_id)
        assigned = member.assignment.topic_partitions
        if await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, (each.topic_name for each in assigned)):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, _HIDDEN_TOPICS)
        members.add([member])
        await context.turn.took(found.steps_of(member_id))
    return members.finish().of(Member)
