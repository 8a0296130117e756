"""ConsumerGroupDescribe (KIP-848): a group's epochs, and what each member has and should have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseTopicPartitions,
    DescribedGroup,
    Member,
)

from ..assignors.model import Assignment
from ..common.group import Group, GroupType
from ..common.topics import TopicsView
from ..modern.descriptions import GroupAsOfNow, described_fields, missing_fields
from .consumer_group import NO_ASSIGNMENT, ConsumerGroup
from .consumer_group_member import ConsumerGroupMember

CLASSIC_MEMBER_TYPE = 0
CONSUMER_MEMBER_TYPE = 1


@dataclass(frozen=True, slots=True)
class ConsumerGroupAsOfNow(GroupAsOfNow[DescribedGroup, Member, ConsumerGroupMember]):
    """A consumer group at one time."""

    _targets: Mapping[str, Assignment]
    _topics: TopicsView

    def for_thread(self) -> Self:
        return replace(self, _topics=self._topics.as_of_now())

    def _partitions_of(self, member: ConsumerGroupMember) -> list[Collection[int]]:
        return [*member.assigned.values(), *member.pending_revocation.values(), *self._target_of(member).values()]

    def describe_member(self, member_id: str) -> Member:
        member = self._members[member_id]
        return Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            member_epoch=member.member_epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.subscribed_topic_names),
            subscribed_topic_regex=member.subscribed_topic_regex,
            assignment=self._told(member.assigned, member.pending_revocation),
            target_assignment=self._told(self._target_of(member)),
            member_type=CLASSIC_MEMBER_TYPE if member.uses_classic_protocol else CONSUMER_MEMBER_TYPE,
        )

    def _target_of(self, member: ConsumerGroupMember) -> Assignment:
        return self._targets.get(member.member_id, NO_ASSIGNMENT)

    def _told(self, *assignments: Mapping[bytes, Collection[int]]) -> ConsumerGroupDescribeResponseAssignment:
        """The assignments together. Topics that were deleted have no name any more, and are left out."""
        together: dict[bytes, list[int]] = {}
        for assignment in assignments:
            for topic_id, partitions in assignment.items():
                together.setdefault(topic_id, []).extend(partitions)
        told = []
        for topic_id, indexes in together.items():
            name = self._topics.topic_name(topic_id)
            if name is not None:
                told.append(
                    ConsumerGroupDescribeResponseTopicPartitions(
                        topic_id=topic_id, topic_name=name, partitions=sorted(indexes)
                    )
                )
        return ConsumerGroupDescribeResponseAssignment(topic_partitions=told)


def group_as_of_now(
    group: Group | None, group_id: str, assignor_of: Callable[[ConsumerGroup], str], topics: TopicsView
) -> ConsumerGroupAsOfNow:
    """The group as it is now, or the error for a group that is none of this type.

    assignor_of: the name of the assignor that the group uses.
    """
    if isinstance(group, ConsumerGroup):
        described = DescribedGroup(**described_fields(group), assignor_name=assignor_of(group))
        return ConsumerGroupAsOfNow(described, group.members.copy(), group.target_assignment.copy(), topics)
    return ConsumerGroupAsOfNow(DescribedGroup(**missing_fields(group, group_id, GroupType.CONSUMER)), {}, {}, topics)
