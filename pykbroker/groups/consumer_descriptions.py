"""ConsumerGroupDescribe (KIP-848): a group's epochs, and what each member has and should have."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pykbroker.java_hash import place_in_a_table
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseTopicPartitions,
    DescribedGroup,
    Member,
)
from pykbroker.state_machine import Token

from .consumer_group import NO_ASSIGNMENT, ConsumerGroup
from .consumer_member import ConsumerMember
from .context import Step
from .group_types import Group
from .target_assignment import TargetAssignments
from .topics import TopicsView

CLASSIC_MEMBER_TYPE = 0
CONSUMER_MEMBER_TYPE = 1


class ConsumerDescriptions:
    def __init__(self, groups: Mapping[str, Group], targets: TargetAssignments, topics: TopicsView) -> None:
        self._groups = groups
        self._targets = targets
        self._topics = topics

    def describe(self, request: ConsumerGroupDescribeRequest, token: Token, step: Step) -> None:
        described = [self._describe(group_id) for group_id in request.group_ids]
        step.answer(token, ConsumerGroupDescribeResponse(groups=described))

    def _describe(self, group_id: str) -> DescribedGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            words = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=words)
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=self._targets.assignor_of(group),
            members=[
                self._describe_member(group, group.members[member_id])
                for member_id in sorted(group.members, key=place_in_a_table)
            ],
        )

    def _describe_member(self, group: ConsumerGroup, member: ConsumerMember) -> Member:
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
            target_assignment=self._told(group.target_assignment.get(member.member_id, NO_ASSIGNMENT)),
            member_type=CLASSIC_MEMBER_TYPE if member.uses_classic_protocol else CONSUMER_MEMBER_TYPE,
        )

    def _told(self, *assignments: Mapping[bytes, Collection[int]]) -> ConsumerGroupDescribeResponseAssignment:
        """Topics that were deleted have no name any more, and are left out."""
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
