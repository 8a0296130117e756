"""A target assignment of a streams group, as a task that may run in a thread (KIP-1263)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..common.group import GroupType
from ..common.records import CoordinatorRecord
from ..modern.assignment_tasks import AssignmentTask, ComputedAssignment
from . import sticky_assignor
from .sticky_assignor import MemberTasks, SubtopologyTasks
from .streams_group import StreamsGroup
from .streams_group_member import StreamsGroupMember
from .streams_records import RECORDS
from .tasks import NO_TASKS, TasksTuple

STANDBY_REPLICAS = "num.standby.replicas"
RACK_AWARE_TAGS = "rack.aware.assignment.tags"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamsAssignmentTask(AssignmentTask[StreamsGroupMember, TasksTuple]):
    """A group as it was when the task was made, with its topology.

    is_ready: whether tasks can be assigned; else every member gets none.
    """

    type: ClassVar[GroupType] = GroupType.STREAMS

    subtopologies: Mapping[str, SubtopologyTasks]
    is_ready: bool
    standby_replicas: int

    @property
    def assignor(self) -> str:
        return sticky_assignor.NAME

    def run(self) -> ComputedAssignment[StreamsGroupMember, TasksTuple]:
        if not self.is_ready:
            return ComputedAssignment(self, dict.fromkeys(self.members, NO_TASKS))
        members = {
            member_id: MemberTasks(member.process_id, self.before.get(member_id, NO_TASKS))
            for member_id, member in self.members.items()
        }
        targets = sticky_assignor.assign(members, self.subtopologies, self.standby_replicas) if members else {}
        self.keep_equal(targets)
        return ComputedAssignment(self, targets)

    def target_record(self, member_id: str, target: TasksTuple) -> CoordinatorRecord:
        return RECORDS.target(self.group_id, member_id, target)


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
    )


def size_of(group: StreamsGroup) -> int:
    """Estimate what an assignment of the group costs, in members and tasks, standby tasks among them."""
    assert group.configured is not None
    return len(group.members) + group.configured.task_count * (1 + _standby_replicas(group))


def _standby_replicas(group: StreamsGroup) -> int:
    return int(group.last_assignment_configs.get(STANDBY_REPLICAS, 0))
