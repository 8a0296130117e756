"""StreamsGroupDescribe (key 89): epochs, topology and members of streams groups (KIP-1071). Served is version 0."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykbroker.groups.common.requests import DescribeStreamsGroup
from pykbroker.protocol.encoded_array import EncodedArray
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.streams_groups import (
    DescribedGroup,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .authorization import authorized_operations, denied
from .described_groups import describe_each
from .group_requests import check_group, has_streams_groups, submit

if TYPE_CHECKING:
    from pykbroker.groups.streams.descriptions import StreamsGroupAsOfNow

_HIDDEN_TOPICS = "The described group uses topics that the client is not authorized to describe."


@handles(
    StreamsGroupDescribeRequest,
    needs=names((Operation.DESCRIBE, ResourceType.GROUP), (Operation.DESCRIBE, ResourceType.TOPIC)),
)
async def streams_group_describe(
    context: RequestContext[Broker], request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    groups = EncodedArray(StreamsGroupDescribeResponse, context.header.api_version)
    describe = partial(_describe, context, with_operations=request.include_authorized_operations)
    await describe_each(context, request.group_ids, groups, describe, _beyond)
    return StreamsGroupDescribeResponse(groups=groups.finish().of(DescribedGroup))


def _beyond(group_id: str) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_REQUEST)


async def _describe(context: RequestContext[Broker], group_id: str, with_operations: bool) -> DescribedGroup:
    if not has_streams_groups(context):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        check_group(context, Operation.DESCRIBE, group_id)
        found: StreamsGroupAsOfNow = await submit(context, group_id, DescribeStreamsGroup(group_id=group_id))
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    if await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, found.topic_names):
        return DescribedGroup(
            group_id=group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=_HIDDEN_TOPICS
        )
    group = found.group
    group.members = await _members(context, found)
    if with_operations and not group.error_code:
        group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group_id)
    return group


async def _members(context: RequestContext[Broker], found: StreamsGroupAsOfNow) -> list[Member]:
    """Encode the members at once: ten thousand are too many objects, and would be freed all at once."""
    members = EncodedArray(StreamsGroupDescribeResponse, context.header.api_version)
    for member_id in await context.turn.through(found.member_ids()):
        members.add([found.describe_member(member_id)])
        await context.turn.took(found.steps_of(member_id))
    return members.finish().of(Member)
