"""A target assignment of a consumer group, as a task that may run in a thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ..assignors import ASSIGNORS, MemberSubscription
from ..assignors.model import Assignment, TopicDescriber
from ..common.group import GroupType
from ..common.records import CoordinatorRecord
from ..modern import assignment_tasks as modern
from .consumer_group import NO_ASSIGNMENT, ConsumerGroup
from .consumer_group_member import ConsumerGroupMember
from .consumer_records import RECORDS
from .resolved_regular_expression import ResolvedRegularExpression, subscription

_WEIGHT_OF_DIFFERENCES = 5
"""How much more a partition costs where members' subscriptions differ than where they are equal."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AssignmentTask(modern.AssignmentTask[ConsumerGroupMember, Assignment]):
    """A group and its topics as they were when the task was made.

    topic_ids: by name, of the topics that a member is subscribed to.
    """

    type: ClassVar[GroupType] = GroupType.CONSUMER

    assignor_name: str
    resolved_regexes: Mapping[str, ResolvedRegularExpression]
    topic_ids: Mapping[str, bytes]
    topics: TopicDescriber
    is_homogeneous: bool

    @property
    def assignor(self) -> str:
        return self.assignor_name

    def run(self) -> ComputedAssignment:
        assigned = ASSIGNORS[self.assignor_name].assign(self._subscriptions(), self.topics, self.is_homogeneous)
        targets: dict[str, Assignment] = {member_id: assigned.get(member_id, {}) for member_id in self.members}
        self.keep_equal(targets)
        static = {member.instance_id: member_id for member_id, member in self.members.items() if member.instance_id}
        return ComputedAssignment(self, targets, static_members=static)

    def target_record(self, member_id: str, target: Assignment) -> CoordinatorRecord:
        return RECORDS.target(self.group_id, member_id, target)

    def _subscriptions(self) -> dict[str, MemberSubscription]:
        """The subscriptions by member. Members with equal subscriptions, as most of a group have, share the set of
        topic ids."""
        known: dict[tuple[tuple[str, ...], str], frozenset[bytes]] = {}
        subscriptions = {}
        for member_id, member in self.members.items():
            said = member.subscribed_topic_names, member.subscribed_topic_regex
            topic_ids = known.get(said)
            if topic_ids is None:
                names = subscription(member, self.resolved_regexes)
                topic_ids = frozenset(self.topic_ids[name] for name in names if name in self.topic_ids)
                known[said] = topic_ids
            subscriptions[member_id] = MemberSubscription(
                topic_ids=topic_ids,
                rack_id=member.rack_id,
                instance_id=member.instance_id,
                assignment=self.before.get(member_id, NO_ASSIGNMENT),
            )
        return subscriptions


@dataclass(frozen=True, slots=True, eq=False)
class ComputedAssignment(modern.ComputedAssignment[ConsumerGroupMember, Assignment]):
    """The result of a task. static_members: by instance id, the member that the group had."""

    static_members: Mapping[str, str] = field(default_factory=dict)

    def target_of(self, member: ConsumerGroupMember) -> Assignment | None:
        """The target of the member; None where it came later. A static member that came back has its former self's
        target."""
        former = member.member_id
        if former not in self.targets and member.instance_id is not None:
            former = self.static_members.get(member.instance_id, former)
        return self.targets.get(former)


def size_of(group: ConsumerGroup, topics: TopicDescriber, topic_ids: frozenset[bytes]) -> int:
    """Estimate what an assignment of the group costs, in members and partitions."""
    size = len(group.members) + sum(topics.partition_count(topic_id) for topic_id in topic_ids)
    return size if group.is_homogeneous else size * _WEIGHT_OF_DIFFERENCES
