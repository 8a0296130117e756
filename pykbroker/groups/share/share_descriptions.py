"""ShareGroupDescribe (KIP-932): a share group's epochs, and what each member has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pykbroker.java_hash import place_in_a_table
from pykbroker.long_work import PORTION, LongWork, ordered, portions
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.share_groups import (
    DescribedGroup,
    Member,
    ShareGroupDescribeResponseAssignment,
    ShareGroupDescribeResponseTopicPartitions,
)

from ..assignors.simple_assignor import NAME
from ..common.group import Group
from ..common.topics import TopicsView
from .share_group import ShareGroup
from .share_group_member import ShareGroupMember


@dataclass(frozen=True, slots=True)
class ShareGroupAsOfNow:
    """A share group at one time, however many turns it takes to describe its members. group: without members."""

    group: DescribedGroup
    _members: Mapping[str, ShareGroupMember]
    _topics: TopicsView

    def member_ids(self) -> LongWork[Iterator[str]]:
        """The member ids in the order in which Kafka lists them."""
        places: list[tuple[int, str]] = []
        for portion in portions(self._members, PORTION // 4):
            places += [(place_in_a_table(member_id), member_id) for member_id in portion]
            yield len(portion) * 3
        return (member_id for _, member_id in (yield from ordered(places)))

    def steps_of(self, member_id: str) -> int:
        """Return how many steps of long work it takes to describe the member and to encode the description."""
        assigned = self._members[member_id].assigned
        return 5 + 2 * len(assigned) + sum(map(len, assigned.values())) // 8

    def describe_member(self, member_id: str) -> Member:
        """The member. Topics that were deleted have no name any more, and are left out."""
        member = self._members[member_id]
        named = ((topic_id, self._topics.topic_name(topic_id), each) for topic_id, each in member.assigned.items())
        return Member(
            member_id=member.member_id,
            rack_id=member.rack_id,
            member_epoch=member.member_epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.subscribed_topic_names),
            assignment=ShareGroupDescribeResponseAssignment(
                topic_partitions=[
                    ShareGroupDescribeResponseTopicPartitions(
                        topic_id=topic_id, topic_name=name, partitions=sorted(partitions)
                    )
                    for topic_id, name, partitions in named
                    if name is not None
                ]
            ),
        )


def share_group_as_of_now(group: Group | None, group_id: str, topics: TopicsView) -> ShareGroupAsOfNow:
    """The group as it is now, or the error for a group that is none of this type."""
    if isinstance(group, ShareGroup):
        described = DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=NAME,
        )
        return ShareGroupAsOfNow(described, group.members.copy(), topics)
    words = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a share group."
    refused = DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=words)
    return ShareGroupAsOfNow(refused, {}, topics)
