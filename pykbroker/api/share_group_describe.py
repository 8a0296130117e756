"""ShareGroupDescribe (key 77): epochs and members of share groups, with what they have (KIP-932).

Served is version 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.groups.common.requests import DescribeShareGroup
from pykbroker.protocol.messages.share_groups import (
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .described_groups import RIGHTS, GroupDescriber
from .share_group_requests import has_share_groups

if TYPE_CHECKING:
    from pykbroker.groups.share.share_descriptions import ShareGroupAsOfNow

_DESCRIBER: GroupDescriber[DescribedGroup, ShareGroupAsOfNow] = GroupDescriber(
    response=ShareGroupDescribeResponse,
    group=DescribedGroup,
    member=Member,
    is_served=has_share_groups,
    request=lambda group_id: DescribeShareGroup(group_id=group_id),
    topics_of_member=lambda member: (each.topic_name for each in member.assignment.topic_partitions),
    words_of_hidden="The group has topics that the client may not describe.",
    looks_at_rights_first=True,
)


@handles(ShareGroupDescribeRequest, needs=RIGHTS)
async def share_group_describe(
    context: RequestContext[Broker], request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    with_operations = request.include_authorized_operations
    groups = await _DESCRIBER.describe(context, request.group_ids, with_operations=with_operations)
    return ShareGroupDescribeResponse(groups=groups.of(DescribedGroup))
