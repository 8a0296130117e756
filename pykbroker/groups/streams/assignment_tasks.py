"""A target assignment of a streams group that is computed beside the event loop (KIP-1263).

A task is made of a group as it is in one epoch, and may run in a thread. The group goes on meanwhile; the assignment is
still good for the members that are there afterwards, and a member that has come since waits for the next assignment.
`consumer.assignment_tasks` has the like for consumer groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..common.records import EncodedRecord
from . import sticky_assignor
from .configured_topology import ConfiguredTopology
from .sticky_assignor import MemberTasks, SubtopologyTasks
from .streams_group import Incarnation, StreamsGroup
from .streams_records import target_record
from .tasks import NO_TASKS, TasksTuple

STANDBY_REPLICAS = "num.standby.replicas"


@dataclass(frozen=True, slots=True, eq=False)
class StreamsAssignmentTask:
    """A group as it was when the task was made; no later change reaches it.

    incarnation: of the group; another group of the same id has another one. process_ids: by member. before: by member,
    the last target assignment. is_ready: whether tasks can be assigned; else every member gets none.
    """

    group_id: str
    incarnation: Incarnation
    group_epoch: int
    process_ids: Mapping[str, str]
    before: dict[str, TasksTuple]
    subtopologies: Mapping[str, SubtopologyTasks]
    is_ready: bool
    standby_replicas: int

    assignor = sticky_assignor.NAME

    def run(self) -> ComputedStreamsAssignment:
        if not self.is_ready:
            return ComputedStreamsAssignment(self, dict.fromkeys(self.process_ids, NO_TASKS))
        members = {
            member_id: MemberTasks(process_id, self.before.get(member_id, NO_TASKS))
            for member_id, process_id in self.process_ids.items()
        }
        targets = sticky_assignor.assign(members, self.subtopologies, self.standby_replicas) if members else {}
        for member_id, target in targets.items():
            before = self.before.get(member_id)
            if before is not None and before == target:
                targets[member_id] = before
        return ComputedStreamsAssignment(self, targets)

    def run_in_thread(
        self, in_batches: Callable[[Sequence[EncodedRecord]], Sequence[bytes]]
    ) -> ComputedStreamsAssignment:
        """Compute the assignment, and encode the records of the members whose target has changed."""
        computed = self.run()
        changed = [
            member_id for member_id, target in computed.targets.items() if target is not self.before.get(member_id)
        ]
        records = [
            EncodedRecord(target_record(self.group_id, member_id, computed.targets[member_id]).encode())
            for member_id in changed
        ]
        return replace(computed, written=changed, batches=in_batches(records))

    def let_go(self) -> None:
        """Free the former target assignment one value after another. To be called in a thread: there are very many."""
        while self.before:
            self.before.popitem()

    def failed(self) -> ComputedStreamsAssignment:
        """Return the result of a failed task: the group asks again."""
        return ComputedStreamsAssignment(self, {}, has_failed=True)


@dataclass(frozen=True, slots=True, eq=False)
class ComputedStreamsAssignment:
    """The result of a task.

    targets: of every member that the group had. written: the members whose target has changed and whose records are in
    `batches`, which are encoded already.
    """

    task: StreamsAssignmentTask
    targets: Mapping[str, TasksTuple]
    has_failed: bool = False
    written: Sequence[str] = ()
    batches: Sequence[bytes] = ()


class StreamsAssignmentOffload(Protocol):
    """A worker that computes large assignments beside the event loop, and has them put into their groups afterwards."""

    @property
    def has_room(self) -> bool:
        """Tell whether another task may begin; where none may, a later heartbeat asks again."""
        ...

    def begin(self, task: StreamsAssignmentTask) -> None: ...


def task_of(group: StreamsGroup, configured: ConfiguredTopology, configs: Mapping[str, str]) -> StreamsAssignmentTask:
    """The task that assigns the group's tasks as of now. configs: the settings of the assignment, by name."""
    return StreamsAssignmentTask(
        group.group_id,
        group.incarnation,
        group.group_epoch,
        {member_id: member.process_id for member_id, member in group.members.items()},
        group.target_assignment.copy(),
        {
            subtopology_id: SubtopologyTasks(each.task_count, each.is_stateful)
            for subtopology_id, each in (configured.subtopologies or {}).items()
        },
        configured.is_ready,
        int(configs.get(STANDBY_REPLICAS, 0)),
    )


def size_of(group: StreamsGroup, configured: ConfiguredTopology, configs: Mapping[str, str]) -> int:
    """Estimate what an assignment of the group costs, in members and tasks, standby tasks among them."""
    return len(group.members) + configured.task_count * (1 + int(configs.get(STANDBY_REPLICAS, 0)))
