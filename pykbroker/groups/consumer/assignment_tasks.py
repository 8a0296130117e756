"""A target assignment that is computed beside the event loop: all that the assignor is told, as values (KIP-1263).

A task is made of a group as it is in one epoch, and may run in a thread. The group goes on meanwhile: members join,
leave, and come back under other ids. The assignment is still good for the members that are there afterwards; a member
that has come since waits for the next assignment, which the group's later epoch asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..assignors import ASSIGNORS, MemberSubscription
from ..assignors.model import Assignment, TopicDescriber
from ..common.records import EncodedRecord
from .consumer_group import NO_ASSIGNMENT, ConsumerGroup, Incarnation
from .consumer_group_member import ConsumerGroupMember
from .consumer_records import target_record
from .resolved_regular_expression import ResolvedRegularExpression, subscription

_WEIGHT_OF_DIFFERENCES = 5
"""How much more a partition costs where members' subscriptions differ than where they are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class AssignmentTask:
    """A group and its topics as they were when the task was made; no later change reaches them.

    incarnation: of the group; another group of the same id has another one. before: by member, the last target
    assignment. topic_ids: by name, of the topics that a member is subscribed to.
    """

    group_id: str
    incarnation: Incarnation
    group_epoch: int
    assignor: str
    members: Mapping[str, ConsumerGroupMember]
    before: dict[str, Assignment]
    resolved_regexes: Mapping[str, ResolvedRegularExpression]
    topic_ids: Mapping[str, bytes]
    topics: TopicDescriber
    is_homogeneous: bool

    def run(self) -> ComputedAssignment:
        assigned = ASSIGNORS[self.assignor].assign(self._subscriptions(), self.topics, self.is_homogeneous)
        targets: dict[str, Assignment] = {}
        for member_id in self.members:
            target, before = assigned.get(member_id, {}), self.before.get(member_id)
            targets[member_id] = before if before is not None and before == target else target
        return ComputedAssignment(self, targets, self._static_members())

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

    def run_in_thread(self, in_batches: Callable[[Sequence[EncodedRecord]], Sequence[bytes]]) -> ComputedAssignment:
        """Compute the assignment, and encode the records of the members whose target has changed."""
        computed = self.run()
        changed = [member_id for member_id, each in computed.targets.items() if each is not self.before.get(member_id)]
        records = [
            EncodedRecord(target_record(self.group_id, member_id, computed.targets[member_id]).encode())
            for member_id in changed
        ]
        return replace(computed, written=changed, batches=in_batches(records))

    def let_go(self) -> None:
        """Free the former target assignment one value after another. To be called in a thread: there are very many."""
        while self.before:
            self.before.popitem()

    def failed(self) -> ComputedAssignment:
        """Return the result of a failed task: the group asks again."""
        return ComputedAssignment(self, {}, {}, has_failed=True)

    def _static_members(self) -> dict[str, str]:
        return {member.instance_id: member_id for member_id, member in self.members.items() if member.instance_id}


@dataclass(frozen=True, slots=True, eq=False)
class ComputedAssignment:
    """The result of a task.

    targets: of every member that the group had. written: the members whose target has changed and whose records are in
    `batches`, which are encoded already.
    """

    task: AssignmentTask
    targets: Mapping[str, Assignment]
    static_members: Mapping[str, str]
    has_failed: bool = False
    written: Sequence[str] = ()
    batches: Sequence[bytes] = ()

    def target_of(self, member: ConsumerGroupMember) -> Assignment | None:
        """The target of the member; None where it came later. A static member that came back has its former self's
        target."""
        former = member.member_id
        if former not in self.targets and member.instance_id is not None:
            former = self.static_members.get(member.instance_id, former)
        return self.targets.get(former)


class AssignmentOffload(Protocol):
    """A worker that computes large assignments beside the event loop, and has them put into their groups afterwards."""

    @property
    def has_room(self) -> bool:
        """Tell whether another task may begin; where none may, a later heartbeat asks again."""
        ...

    def begin(self, task: AssignmentTask) -> None: ...


def size_of(group: ConsumerGroup, topics: TopicDescriber, topic_ids: frozenset[bytes]) -> int:
    """Estimate what an assignment of the group costs, in members and partitions."""
    size = len(group.members) + sum(topics.partition_count(topic_id) for topic_id in topic_ids)
    return size if group.is_homogeneous else size * _WEIGHT_OF_DIFFERENCES
