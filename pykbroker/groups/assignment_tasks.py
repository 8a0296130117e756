"""A target assignment that is computed beside the event loop: all that the assignor is told, as values (KIP-1263).

A task is made of a group as it is in one epoch, and may run in a thread. The group goes on meanwhile: members join,
leave, and come back under other ids. What was computed is still good for those who are there then; whoever has come
since waits for the next assignment, which the group's later epoch asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from .assignors import ASSIGNORS, MemberSubscription
from .assignors.model import Assignment, TopicDescriber
from .consumer_group import ConsumerGroup, Incarnation
from .consumer_member import ConsumerMember
from .consumer_records import target_record
from .records import CoordinatorRecord, EncodedRecord

_WEIGHT_OF_DIFFERENCES = 5
"""What a partition costs where members' subscriptions differ, next to one where all say the same."""


@dataclass(frozen=True, slots=True, eq=False)
class AssignmentTask:
    """incarnation: of the group, which another one of its id does not have. topics: as they are now, for ever."""

    group_id: str
    incarnation: Incarnation
    group_epoch: int
    assignor: str
    members: Mapping[str, MemberSubscription]
    topics: TopicDescriber
    is_homogeneous: bool

    def run(self) -> ComputedAssignment:
        assigned = ASSIGNORS[self.assignor].assign(self.members, self.topics, self.is_homogeneous)
        targets = {member_id: assigned.get(member_id, {}) for member_id in self.members}
        return ComputedAssignment(self, targets, {}, self._static_members())

    def run_in_thread(self) -> ComputedAssignment:
        """The records of those whose target is another one are encoded here, too."""
        computed = self.run()
        for member_id, target in computed.targets.items():
            if target != self.members[member_id].assignment:
                record = target_record(self.group_id, member_id, target)
                computed.records[member_id] = EncodedRecord(record.key, record.value, record.encode())
        return computed

    def failed(self) -> ComputedAssignment:
        """Nothing came of it; the group asks again."""
        return ComputedAssignment(self, {}, {}, {}, has_failed=True)

    def _static_members(self) -> dict[str, str]:
        return {member.instance_id: member_id for member_id, member in self.members.items() if member.instance_id}


@dataclass(frozen=True, slots=True, eq=False)
class ComputedAssignment:
    """targets: of every member that the group had. records: those that are encoded already."""

    task: AssignmentTask
    targets: Mapping[str, Assignment]
    records: dict[str, CoordinatorRecord]
    static_members: Mapping[str, str]
    has_failed: bool = False

    def target_of(self, member: ConsumerMember) -> Assignment | None:
        """None where the member came later. A static one that came back has what its former self was to have."""
        former = member.member_id
        if former not in self.targets and member.instance_id is not None:
            former = self.static_members.get(member.instance_id, former)
        return self.targets.get(former)

    def record_of(self, member: ConsumerMember, target: Assignment) -> CoordinatorRecord:
        known = self.records.get(member.member_id)
        return known or target_record(self.task.group_id, member.member_id, target)


class AssignmentOffload(Protocol):
    """Who computes large assignments beside the event loop, and has them put into their groups afterwards."""

    @property
    def has_room(self) -> bool:
        """Where there is none, a later heartbeat asks again."""
        ...

    def begin(self, task: AssignmentTask) -> None: ...


def size_of(group: ConsumerGroup, topics: TopicDescriber, topic_ids: frozenset[bytes]) -> int:
    """What an assignment of the group costs, about: members and partitions."""
    size = len(group.members) + sum(topics.partition_count(topic_id) for topic_id in topic_ids)
    return size if group.is_homogeneous else size * _WEIGHT_OF_DIFFERENCES
