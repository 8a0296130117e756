"""ConsumerGroupDescribe (key 69): epochs and members of consumer groups, with what they have and should have (KIP-848).

Served are versions 0 and 1: 1 says which protocol a member speaks (KIP-1099).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pykbroker.groups.common.requests import DescribeConsumerGroup
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .described_groups import RIGHTS, GroupDescriber
from .group_requests import has_consumer_groups

if TYPE_CHECKING:
    from pykbroker.groups.consumer.descriptions import ConsumerGroupAsOfNow


def _topics_of_member(member: Member) -> Iterator[str]:
    """The names of the topics that the member has, or gets."""
    for assignment in (member.assignment, member.target_assignment):
        for each in assignment.topic_partitions:
            yield each.topic_name


_DESCRIBER: GroupDescriber[DescribedGroup, ConsumerGroupAsOfNow] = GroupDescriber(
    response=ConsumerGroupDescribeResponse,
    group=DescribedGroup,
    member=Member,
    is_served=has_consumer_groups,
    request=lambda group_id: DescribeConsumerGroup(group_id=group_id),
    topics_of_member=_topics_of_member,
    words_of_hidden="The group has topics that the client may not describe.",
)


@handles(ConsumerGroupDescribeRequest, needs=RIGHTS)
async def consumer_group_describe(
    context: RequestContext[Broker], request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    with_operations = request.include_authorized_operations
    groups = await _DESCRIBER.describe(context, request.group_ids, with_operations=with_operations)
    return ConsumerGroupDescribeResponse(groups=groups.of(DescribedGroup))
