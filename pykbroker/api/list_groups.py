"""ListGroups (key 16): the groups that this broker coordinates.

Served are versions 0 to 5: 4 brought states and a filter by them (KIP-518), 5 types (KIP-848).
"""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_admin import ListedGroup, ListGroupsRequest, ListGroupsResponse
from pykbroker.server.coordinator_driver import CoordinatorRefused
from pykbroker.server.dispatch import RequestContext, handles

from .group_requests import group_context


@handles(ListGroupsRequest)
async def list_groups(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    driver = context.broker.groups
    if driver.loading_partitions:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    groups: list[ListedGroup] = []
    for index in driver.active_partitions:
        try:
            response: ListGroupsResponse = await driver.submit_to_partition(index, request, group_context(context))
        except CoordinatorRefused as refused:
            if refused.error_code is not ErrorCode.NOT_COORDINATOR:
                return ListGroupsResponse(error_code=refused.error_code)
        else:
            groups += response.groups
    return ListGroupsResponse(groups=groups)
