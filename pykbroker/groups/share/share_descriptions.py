"""ShareGroupDescribe (KIP-932): a share group's epochs, and what each member has."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

from pykbroker.protocol.messages.share_groups import (
    DescribedGroup,
    Member,
    ShareGroupDescribeResponseAssignment,
    ShareGroupDescribeResponseTopicPartitions,
)

from ..assignors.simple_assignor import NAME
from ..common.group import Group, GroupType
from ..common.topics import TopicsView
from ..modern.descriptions import GroupAsOfNow, described_fields, missing_fields
from .share_group import ShareGroup
from .share_group_member import ShareGroupMember


@dataclass(frozen=True, slots=True)
class ShareGroupAsOfNow(GroupAsOfNow[DescribedGroup, Member, ShareGroupMember]):
    """A share group at one time."""

    _topics: TopicsView

    def for_thread(self) -> Self:
        return replace(self, _topics=self._topics.as_of_now())

    def _partitions_of(self, member: ShareGroupMember) -> list[Collection[int]]:
        return list(member.assigned.values())

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
        described = DescribedGroup(**described_fields(group), assignor_name=NAME)
        return ShareGroupAsOfNow(described, group.members.copy(), topics)
    return ShareGroupAsOfNow(DescribedGroup(**missing_fields(group, group_id, GroupType.SHARE)), {}, topics)
