"""ConsumerGroupDescribe (KIP-848): a group's epochs, and what each member has and should have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from pykbroker.java_hash import place_in_a_table
from pykbroker.long_work import PORTION, LongWork, ordered, portions
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseTopicPartitions,
    DescribedGroup,
    Member,
)

from ..assignors.model import Assignment
from ..common.group import Group
from ..common.topics import TopicsView
from .consumer_group import NO_ASSIGNMENT, ConsumerGroup
from .consumer_group_member import ConsumerGroupMember

CLASSIC_MEMBER_TYPE = 0
CONSUMER_MEMBER_TYPE = 1


@dataclass(frozen=True, slots=True)
class ConsumerGroupAsOfNow:
    """A group at one time, however many turns it takes to describe its members. group: without members."""

    group: DescribedGroup
    _members: Mapping[str, ConsumerGroupMember]
    _targets: Mapping[str, Assignment]
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
        member = self._members[member_id]
        each = [*member.assigned.values(), *member.pending_revocation.values(), *self._target_of(member).values()]
        return 5 + 2 * len(each) + sum(map(len, each)) // 8

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
        described = DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=assignor_of(group),
        )
        return ConsumerGroupAsOfNow(described, group.members.copy(), group.target_assignment.copy(), topics)
    words = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
    refused = DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=words)
    return ConsumerGroupAsOfNow(refused, {}, {}, topics)
