"""DeleteGroups (key 42): forget empty groups and their offsets (KIP-229). Served are versions 0 to 2.

A share group's state at the share coordinator is deleted first (KIP-932).
"""

from __future__ import annotations

from pykbroker.groups.common.requests import DeleteGroup
from pykbroker.protocol.errors import ApiError
from pykbroker.protocol.messages.group_admin import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .group_requests import check_group, group_context, submit

_STEPS_OF_GROUP = 20


@handles(DeleteGroupsRequest, needs=names((Operation.DELETE, ResourceType.GROUP)))
async def delete_groups(context: RequestContext[Broker], request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """A group that is named twice is answered once."""
    response = DeleteGroupsResponse()
    for group_id in await context.turn.distinct(request.groups_names):
        response.results.append(await _delete(context, group_id))
        await context.turn.took(_STEPS_OF_GROUP)
    return response


async def _delete(context: RequestContext[Broker], group_id: str) -> DeletableGroupResult:
    try:
        check_group(context, Operation.DELETE, group_id)
        groups = context.node.groups
        if groups.is_share_group(group_id):
            error_code = await groups.share_states.delete_group(group_id, group_context(context))
        else:
            error_code = await submit(context, group_id, DeleteGroup(group_id=group_id))
    except ApiError as error:
        error_code = error.code
    return DeletableGroupResult(group_id=group_id, error_code=error_code)
