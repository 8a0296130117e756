"""The target assignment of a consumer group (KIP-848): what each member should have, computed when the group changed.

A new target assignment is due in a member's heartbeat, and not more often than the assignment interval allows
(KIP-1263); until then the old one holds. A large one is computed beside the event loop, and put into the group when it
is done (`assignment_tasks`). The model is Kafka's `TargetAssignmentBuilder`.
"""

from __future__ import annotations

from pykbroker.kept_entries import KeptEntries

from ..common.config import GroupConfig
from ..common.context import Step
from ..common.topics import TopicsView, topic_ids
from .assignment_tasks import AssignmentOffload, AssignmentTask, ComputedAssignment, size_of
from .consumer_group import ConsumerGroup
from .consumer_records import target_epoch_record, target_record, target_tombstone
from .consumer_replay import ConsumerReplay


class TargetAssignments:
    """The target assignments of a shard's consumer groups are computed here.

    offload: computes large assignments; where it is None, they are computed at once.
    """

    def __init__(
        self,
        config: GroupConfig,
        records: ConsumerReplay,
        topics: TopicsView,
        offload: AssignmentOffload | None = None,
    ) -> None:
        self._default = config.consumer_assignors[0]
        self._offered = config.consumer_assignors
        self._most_at_once = config.consumer_assigned_at_once
        self._records = records
        self._topics = topics
        self._offload = offload
        self._awaited: dict[str, AssignmentTask] = {}
        """By group: the task whose assignment will be taken. Those of other tasks are dropped."""
        self._kept: KeptEntries[str, AssignmentTask] = KeptEntries(self._awaited.get, lambda task: task)

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

    def update_if_due(self, group: ConsumerGroup, interval_ms: int, step: Step) -> None:
        if group.group_epoch > group.assignment_epoch and self._is_due(group, interval_ms, step):
            self.update(group, step)

    def _is_due(self, group: ConsumerGroup, interval_ms: int, step: Step) -> bool:
        last_ms = group.assignment_timestamp_ms
        # After the clock was set back an assignment is due at once; Kafka waits until the clock has caught up.
        return not last_ms or not last_ms <= step.timestamp_ms < last_ms + interval_ms

    def update(self, group: ConsumerGroup, step: Step) -> None:
        """Compute a small assignment at once, and have a large one computed; the old one holds until then."""
        offload = self._offload
        if self._is_awaited(group):
            return
        if offload is None or self._size_of(group) <= self._most_at_once:
            self._put(group, self._task(group).run(), step)
        elif offload.has_room:
            task = self._task(group)
            self._kept.keep(group.group_id)
            self._awaited[group.group_id] = task
            offload.begin(task)

    def _size_of(self, group: ConsumerGroup) -> int:
        return size_of(group, self._topics, topic_ids(self._topics, group.topic_names))

    def _is_awaited(self, group: ConsumerGroup) -> bool:
        awaited = self._awaited.get(group.group_id)
        return awaited is not None and awaited.incarnation is group.incarnation

    def _task(self, group: ConsumerGroup) -> AssignmentTask:
        named = ((name, self._topics.topic_id(name)) for name in group.topic_names)
        return AssignmentTask(
            group.group_id,
            group.incarnation,
            group.group_epoch,
            self.assignor_of(group),
            group.members.copy(),
            group.target_assignment.copy(),
            group.resolved_regexes.copy(),
            {name: topic_id for name, topic_id in named if topic_id is not None},
            self._topics.as_of_now(),
            group.is_homogeneous,
        )

    def put_awaited(self, group: ConsumerGroup | None, computed: ComputedAssignment, step: Step) -> None:
        """Take an assignment that was computed beside the event loop; drop it where the group is not that group any
        more."""
        task = computed.task
        if self._awaited.get(task.group_id) is not task:
            return
        self._kept.keep(task.group_id)
        del self._awaited[task.group_id]
        if computed.has_failed:
            return
        if group is not None and group.incarnation is task.incarnation and task.group_epoch > group.assignment_epoch:
            self._put(group, computed, step)

    def _put(self, group: ConsumerGroup, computed: ComputedAssignment, step: Step) -> None:
        """Give the group the target assignment of the epoch that it was computed for; where the group is in a later
        epoch by now, the next assignment follows.

        The record of the epoch is the last one. So where a crash leaves a log with some of the targets only, the next
        coordinator finds a group that needs an assignment; partitions stay with their owners until then.
        """
        self._put_prepared(group, computed, step)
        targets = group.target_assignment
        for member_id, member in group.members.items():
            target = computed.target_of(member)
            if target is not None and target is not (known := targets.get(member_id)) and target != known:
                self._records.change(target_record(group.group_id, member_id, target), step)
        epoch = computed.task.group_epoch
        self._records.change(target_epoch_record(group.group_id, epoch, step.timestamp_ms), step)
        step.because(group.group_id, f"new target assignment for epoch {epoch} by {computed.task.assignor}")

    def _put_prepared(self, group: ConsumerGroup, computed: ComputedAssignment, step: Step) -> None:
        """Apply what the encoded batches say, and delete the targets of members that have left since."""
        step.prepared = computed.batches
        for member_id in computed.written:
            if member_id in group.members:
                group.target_assignment[member_id] = computed.targets[member_id]
            else:
                step.append(target_tombstone(group.group_id, member_id))

    def assignor_of(self, group: ConsumerGroup) -> str:
        """The assignor that most members ask for, if it is still configured; else the default."""
        preferred = group.preferred_assignor
        return preferred if preferred in self._offered else self._default
