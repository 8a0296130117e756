"""DescribeGroups (key 15): state and members of classic groups.

Served are versions 0 to 6: 3 brought authorized operations (KIP-430), 4 static members (KIP-345), 6 an error for
groups that are not there (KIP-1043).
"""

from __future__ import annotations

from functools import partial

from pykbroker.protocol.encoded_array import EncodedArray
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.group_admin import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .authorization import authorized_operations
from .described_groups import describe_each
from .group_requests import check_group, submit

_STEPS_OF_MEMBER = 5


@handles(DescribeGroupsRequest, needs=names((Operation.DESCRIBE, ResourceType.GROUP)))
async def describe_groups(context: RequestContext[Broker], request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    groups = EncodedArray(DescribeGroupsResponse, context.header.api_version)
    describe = partial(_describe, context, with_operations=request.include_authorized_operations)
    await describe_each(context, request.groups, groups, describe, _beyond)
    return DescribeGroupsResponse(groups=groups.finish().of(DescribedGroup))


def _beyond(group_id: str) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_REQUEST)


async def _describe(context: RequestContext[Broker], group_id: str, with_operations: bool) -> DescribedGroup:
    try:
        check_group(context, Operation.DESCRIBE, group_id)
        response: DescribeGroupsResponse = await submit(context, group_id, DescribeGroupsRequest(groups=[group_id]))
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    (group,) = response.groups
    await context.turn.took(len(group.members) * _STEPS_OF_MEMBER)
    if with_operations and not group.error_code:
        group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group_id)
    return group
