"""The target assignment of a group of a new protocol: what each member should have, computed when the group changed.

A new target assignment is due in a member's heartbeat, and not more often than the assignment interval allows
(KIP-1263); until then the old one holds. A large one is computed beside the event loop, and put into the group when it
is done (`assignment_tasks`). The model is Kafka's `TargetAssignmentBuilder`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Generic

from pykbroker.kept_entries import KeptEntries

from ..common.config import GroupConfig
from ..common.context import Step
from .assignment_tasks import AssignmentOffload, AssignmentTask, ComputedAssignment
from .modern_group import TargetT
from .modern_member import MemberT
from .modern_replay import GroupT, ModernReplay
from .preparations import is_large


class TargetAssignments(ABC, Generic[GroupT, MemberT, TargetT]):
    """The target assignments of a shard's groups of one type are computed here.

    offload: computes large assignments; where it is None, they are computed at once.
    """

    def __init__(
        self,
        config: GroupConfig,
        records: ModernReplay[GroupT, MemberT, TargetT],
        offload: AssignmentOffload | None = None,
    ) -> None:
        self._most_at_once = config.consumer_assigned_at_once
        self._records = records
        self._offload = offload
        self._awaited: dict[str, AssignmentTask[MemberT, TargetT]] = {}
        """By group: the task whose assignment will be taken. Those of other tasks are dropped."""
        self._kept = KeptEntries(self._awaited.get, lambda task: task)

    def is_large(self, *assignments: Mapping[bytes, Collection[int]]) -> bool:
        """Tell whether the partitions of these assignments, by topic id, are so many that a member's step with them is
        computed beside the event loop."""
        return self._offload is not None and is_large(assignments, self._most_at_once)

    @abstractmethod
    def _size_of(self, group: GroupT) -> int:
        """Estimate what an assignment of the group costs, in members and in partitions or tasks."""

    @abstractmethod
    def _task_of(self, group: GroupT) -> AssignmentTask[MemberT, TargetT]:
        """The task that computes an assignment for the group as it is now."""

    def _has_put(self, group: GroupT, computed: ComputedAssignment[MemberT, TargetT]) -> None:
        """Called when the assignment has found its way into the group."""

    # Trials

    def begin_trial(self) -> None:
        """Begin a trial: `end_trial` may take back what changes from here on."""
        self._kept.begin()

    def end_trial(self, *, is_kept: bool) -> None:
        """End the trial of a step. is_kept: whether the changes stay. A task that the trial began is dropped where
        they do not."""
        for group_id, task in self._kept.end().items():
            if not is_kept:
                self._awaited.pop(group_id, None)
                if task is not None:
                    self._awaited[group_id] = task

    # Assignments

    def update_if_due(self, group: GroupT, interval_ms: int, step: Step) -> None:
        if group.group_epoch > group.assignment_epoch and self.is_due(group, interval_ms, step):
            self.update(group, step)

    def is_due(self, group: GroupT, interval_ms: int, step: Step) -> bool:
        """Tell whether the interval has passed since the last assignment."""
        last_ms = group.assignment_timestamp_ms
        # After the clock was set back an assignment is due at once; Kafka waits until the clock has caught up.
        return not last_ms or not last_ms <= step.timestamp_ms < last_ms + interval_ms

    def update(self, group: GroupT, step: Step) -> None:
        """Compute a small assignment at once, and have a large one computed; the old one holds until then."""
        offload = self._offload
        if self._is_awaited(group):
            return
        if offload is None or self._size_of(group) <= self._most_at_once:
            self._put(group, self._task_of(group).run(), step)
        elif offload.has_room:
            task = self._task_of(group)
            self._kept.keep(group.group_id)
            self._awaited[group.group_id] = task
            offload.begin(task)

    def _is_awaited(self, group: GroupT) -> bool:
        awaited = self._awaited.get(group.group_id)
        return awaited is not None and awaited.incarnation is group.incarnation

    def put_awaited(self, computed: ComputedAssignment[MemberT, TargetT], step: Step) -> None:
        """Take an assignment that was computed beside the event loop; drop it where the group is not that group any
        more. Members hear of it one by one."""
        task = computed.task
        if self._awaited.get(task.group_id) is not task:
            return
        self._kept.keep(task.group_id)
        del self._awaited[task.group_id]
        if computed.has_failed:
            return
        group = self._records.find(task.group_id)
        if group is not None and group.incarnation is task.incarnation and task.group_epoch > group.assignment_epoch:
            self._put(group, computed, step)

    def _put(self, group: GroupT, computed: ComputedAssignment[MemberT, TargetT], step: Step) -> None:
        """Give the group the target assignment of the epoch that it was computed for; where the group is in a later
        epoch by now, the next assignment follows.

        The record of the epoch is the last one. So where a crash leaves a log with some of the targets only, the next
        coordinator finds a group that needs an assignment; members keep what they have until then.
        """
        records = self._records.records
        self._put_prepared(group, computed, step)
        targets = group.target_assignment
        for member_id, member in group.members.items():
            target = computed.target_of(member)
            if target is not None and target is not (known := targets.get(member_id)) and target != known:
                self._records.change(records.target(group.group_id, member_id, target), step)
        epoch = computed.task.group_epoch
        self._records.change(records.target_epoch(group.group_id, epoch, step.timestamp_ms), step)
        step.because(group.group_id, f"new target assignment for epoch {epoch} by {computed.task.assignor}")
        self._has_put(group, computed)

    def _put_prepared(self, group: GroupT, computed: ComputedAssignment[MemberT, TargetT], step: Step) -> None:
        """Apply what the encoded batches say, and delete the targets of members that have left since."""
        step.prepared = computed.batches
        for member_id in computed.written:
            if member_id in group.members:
                group.put_target(member_id, computed.targets[member_id])
            else:
                step.append(self._records.records.target_tombstone(group.group_id, member_id))
