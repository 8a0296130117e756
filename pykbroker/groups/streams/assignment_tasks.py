"""A target assignment of a streams group, as a task that may run in a thread (KIP-1263)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ..common.group import GroupType
from ..common.records import CoordinatorRecord
from ..modern.assignment_tasks import AssignmentTask, ComputedAssignment
from . import sticky_assignor
from .sticky_assignor import MemberTasks, SubtopologyTasks
from .streams_group import StreamsGroup
from .streams_group_member import StreamsGroupMember
from .streams_records import RECORDS
from .task_offsets import NOT_TOLD, MemberTaskOffsets
from .tasks import NO_TASKS, TasksTuple

STANDBY_REPLICAS = "num.standby.replicas"
RACK_AWARE_TAGS = "rack.aware.assignment.tags"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamsAssignmentTask(AssignmentTask[StreamsGroupMember, TasksTuple]):
    """A group as it was when the task was made, with its topology.

    is_ready: whether tasks can be assigned; else every member gets none. is_of_4_4: whether the rules are those of
    Kafka 4.4, by which tasks stay where members have them, and offsets count that members told.
    """

    type: ClassVar[GroupType] = GroupType.STREAMS

    subtopologies: Mapping[str, SubtopologyTasks]
    is_ready: bool
    standby_replicas: int
    is_of_4_4: bool = False
    offsets: Mapping[str, MemberTaskOffsets] = field(default_factory=dict)

    @property
    def assignor(self) -> str:
        return sticky_assignor.NAME

    def run(self) -> ComputedAssignment[StreamsGroupMember, TasksTuple]:
        static = {member.instance_id: member_id for member_id, member in self.members.items() if member.instance_id}
        if not self.is_ready:
            return ComputedStreamsAssignment(self, dict.fromkeys(self.members, NO_TASKS), static_members=static)
        members = {member_id: self._tasks_of(member) for member_id, member in self.members.items()}
        targets: dict[str, TasksTuple] = {}
        if members:
            targets = sticky_assignor.assign(
                members, self.subtopologies, self.standby_replicas, is_of_4_4=self.is_of_4_4
            )
        self.keep_equal(targets)
        return ComputedStreamsAssignment(self, targets, static_members=static)

    def _tasks_of(self, member: StreamsGroupMember) -> MemberTasks:
        if not self.is_of_4_4:
            return MemberTasks(member.process_id, self.before.get(member.member_id, NO_TASKS))
        active = {name: frozenset(partitions) for name, partitions in member.assigned.active.items()}
        tasks = TasksTuple(active, member.assigned.standby, member.assigned.warmup)
        return MemberTasks(member.process_id, tasks, self.offsets.get(member.member_id, NOT_TOLD).offsets)

    def target_record(self, member_id: str, target: TasksTuple) -> CoordinatorRecord:
        return RECORDS.target(self.group_id, member_id, target)


@dataclass(frozen=True, slots=True, eq=False)
class ComputedStreamsAssignment(ComputedAssignment[StreamsGroupMember, TasksTuple]):
    """The result of a task. static_members: by instance id, the member that the group had."""

    static_members: Mapping[str, str] = field(default_factory=dict)

    def target_of(self, member: StreamsGroupMember) -> TasksTuple | None:
        """The target of the member; None where it came later. A static member that came back has its former self's
        target."""
        former = member.member_id
        if former not in self.targets and member.instance_id is not None:
            former = self.static_members.get(member.instance_id, former)
        return self.targets.get(former)


def task_of(group: StreamsGroup) -> StreamsAssignmentTask:
    """The task that assigns the group's tasks as of now, by its topology and its settings."""
    configured = group.configured
    assert configured is not None
    return StreamsAssignmentTask(
        group_id=group.group_id,
        incarnation=group.incarnation,
        group_epoch=group.group_epoch,
        members=group.members.copy(),
        before=group.target_assignment.copy(),
        subtopologies={
            subtopology_id: SubtopologyTasks(each.task_count, each.is_stateful)
            for subtopology_id, each in (configured.subtopologies or {}).items()
        },
        is_ready=configured.is_ready,
        standby_replicas=_standby_replicas(group),
        is_of_4_4=group.is_of_4_4,
        offsets=group.task_offsets.copy(),
    )


def size_of(group: StreamsGroup) -> int:
    """Estimate what an assignment of the group costs, in members and tasks, standby tasks among them."""
    assert group.configured is not None
    return len(group.members) + group.configured.task_count * (1 + _standby_replicas(group))


def _standby_replicas(group: StreamsGroup) -> int:
    return int(group.last_assignment_configs.get(STANDBY_REPLICAS, 0))
