"""StreamsGroupDescribe (key 89): epochs, topology and members of streams groups (KIP-1071).

Served are versions 0 and 1; 1 tells the assignor, and the description of the topology (KIP-1331).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pykbroker.groups.common.requests import DescribeStreamsGroup
from pykbroker.protocol.messages.streams_groups import (
    DescribedGroup,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .described_groups import RIGHTS, GroupDescriber
from .group_requests import has_streams_groups

if TYPE_CHECKING:
    from pykbroker.groups.streams.descriptions import StreamsGroupAsOfNow

_DESCRIBER: GroupDescriber[DescribedGroup, StreamsGroupAsOfNow] = GroupDescriber(
    response=StreamsGroupDescribeResponse,
    group=DescribedGroup,
    member=Member,
    is_served=has_streams_groups,
    request=lambda group_id: DescribeStreamsGroup(group_id=group_id),
    topics_of_group=lambda found: found.topic_names,
    words_of_hidden="The described group uses topics that the client is not authorized to describe.",
)


def _with_description(group_id: str) -> DescribeStreamsGroup:
    return DescribeStreamsGroup(group_id=group_id, with_description=True)


@handles(StreamsGroupDescribeRequest, needs=RIGHTS)
async def streams_group_describe(
    context: RequestContext[Broker], request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    with_operations = request.include_authorized_operations
    describer = replace(_DESCRIBER, request=_with_description) if request.include_topology_description else _DESCRIBER
    groups = await describer.describe(context, request.group_ids, with_operations=with_operations)
    return StreamsGroupDescribeResponse(groups=groups.of(DescribedGroup))
