"""ConsumerGroupDescribe (key 69): epochs and members of consumer groups, with what they have and should have (KIP-848).

Served are versions 0 and 1: 1 says which protocol a member speaks (KIP-1099).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pykbroker.groups.common.requests import DescribeConsumerGroup
from pykbroker.protocol.encoded_array import EncodedArray
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .authorization import authorized_operations, denied
from .described_groups import describe_each
from .group_requests import check_group, has_consumer_groups, submit

if TYPE_CHECKING:
    from pykbroker.groups.consumer.descriptions import ConsumerGroupAsOfNow

_HIDDEN_TOPICS = "The group has topics that the client may not describe."


@handles(
    ConsumerGroupDescribeRequest,
    needs=names((Operation.DESCRIBE, ResourceType.GROUP), (Operation.DESCRIBE, ResourceType.TOPIC)),
)
async def consumer_group_describe(
    context: RequestContext[Broker], request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    groups = EncodedArray(ConsumerGroupDescribeResponse, context.header.api_version)
    describe = partial(_describe, context, with_operations=request.include_authorized_operations)
    await describe_each(context, request.group_ids, groups, describe, _beyond)
    return ConsumerGroupDescribeResponse(groups=groups.finish().of(DescribedGroup))


def _beyond(group_id: str) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_REQUEST)


async def _describe(context: RequestContext[Broker], group_id: str, with_operations: bool) -> DescribedGroup:
    if not has_consumer_groups(context):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        check_group(context, Operation.DESCRIBE, group_id)
        found: ConsumerGroupAsOfNow = await submit(context, group_id, DescribeConsumerGroup(group_id=group_id))
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    group = found.group
    try:
        group.members = await _members(context, found)
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    if with_operations and not group.error_code:
        group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group_id)
    return group


async def _members(context: RequestContext[Broker], found: ConsumerGroupAsOfNow) -> list[Member]:
    """Encode the members at once: ten thousand are too many objects, and would be freed all at once.

    Raises ApiError where a member has or gets a topic that the client may not describe.
    """
    members = EncodedArray(ConsumerGroupDescribeResponse, context.header.api_version)
    for member_id in await context.turn.through(found.member_ids()):
        member = found.describe_member(member_id)
        assigned = (*member.assignment.topic_partitions, *member.target_assignment.topic_partitions)
        if await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, (each.topic_name for each in assigned)):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, _HIDDEN_TOPICS)
        members.add([member])
        await context.turn.took(found.steps_of(member_id))
    return members.finish().of(Member)
