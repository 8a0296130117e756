"""ListGroups (key 16): the groups that this broker coordinates.

Served are versions 0 to 5: 4 brought states and a filter by them (KIP-518), 5 types (KIP-848).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from pykbroker.groups.common.requests import ListSomeGroups
from pykbroker.java_hash import place_in_a_table
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.group_admin import ListedGroup, ListGroupsRequest, ListGroupsResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import Turn, portions

from .authorization import denied, is_allowed_on_cluster
from .group_requests import group_context

_GROUPS_AT_ONCE = 300
_STEPS_OF_GROUP = 8
_STEPS_OF_SORTING = 5


@handles(
    ListGroupsRequest, needs=names((Operation.DESCRIBE, ResourceType.CLUSTER), (Operation.DESCRIBE, ResourceType.GROUP))
)
async def list_groups(context: RequestContext[Broker], request: ListGroupsRequest) -> ListGroupsResponse:
    driver = context.node.groups
    if driver.loading_partitions:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    groups: list[ListedGroup] = []
    for index in driver.active_partitions:
        try:
            groups += await _groups_of_partition(context, request, index)
        except ApiError as error:
            if error.code is not ErrorCode.NOT_COORDINATOR:
                return ListGroupsResponse(error_code=error.code)
    if not is_allowed_on_cluster(context, Operation.DESCRIBE, is_logged=False):
        ids = [each.group_id for each in groups]
        hidden = await denied(context, Operation.DESCRIBE, ResourceType.GROUP, ids, is_logged=False)
        groups = [each for each in groups if each.group_id not in hidden]
    return ListGroupsResponse(groups=groups)


async def _groups_of_partition(
    context: RequestContext[Broker], request: ListGroupsRequest, index: int
) -> list[ListedGroup]:
    """List the groups that exist now, each as it is when its turn has come. Raises ApiError."""
    driver = context.node.groups
    shard = driver.shard(index)
    if shard is None:
        raise ApiError(ErrorCode.NOT_COORDINATOR)
    groups: list[ListedGroup] = []
    for group_ids in portions(await _in_order(context.turn, list(shard.groups)), _GROUPS_AT_ONCE):
        asked = ListSomeGroups(request=request, group_ids=group_ids)
        response: ListGroupsResponse = await driver.submit_to_partition(index, asked, group_context(context))
        groups += response.groups
        await context.turn.took(len(group_ids) * _STEPS_OF_GROUP)
    return groups


async def _in_order(turn: Turn, group_ids: list[str]) -> Iterator[str]:
    """The order of Kafka's tables: sorted by the thousand, and merged as far as somebody asks."""
    sorted_portions = []
    for portion in portions(group_ids):
        placed = sorted(((place_in_a_table(group_id), group_id) for group_id in portion), reverse=True)
        sorted_portions.append(_taken_from(placed))
        await turn.took(len(portion) * _STEPS_OF_SORTING)
    return (group_id for _, group_id in heapq.merge(*sorted_portions))


def _taken_from(entries: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Drop the entries one by one from the end: to free a hundred thousand at once would hold the loop."""
    while entries:
        yield entries.pop()
