"""The target assignment of a streams group: which member should have which task, computed when the group changed.

A new target assignment is due in a member's heartbeat, not more often than the assignment interval allows (KIP-1263),
and not while a group that was empty waits for more members. A large one is computed beside the event loop, and put into
the group when it is done (`assignment_tasks`). The model is Kafka's `TargetAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pykbroker.kept_entries import KeptEntries

from ..common.config import GroupConfig
from ..common.context import Step
from .assignment_tasks import (
    ComputedStreamsAssignment,
    StreamsAssignmentOffload,
    StreamsAssignmentTask,
    size_of,
    task_of,
)
from .configured_topology import ConfiguredTopology
from .streams_group import StreamsGroup
from .streams_records import target_epoch_record, target_record, target_tombstone
from .streams_replay import StreamsReplay


class StreamsTargetAssignments:
    """The target assignments of a shard's streams groups are computed here.

    offload: computes large assignments; where it is None, they are computed at once.
    """

    def __init__(
        self, config: GroupConfig, records: StreamsReplay, offload: StreamsAssignmentOffload | None = None
    ) -> None:
        self._most_at_once = config.consumer_assigned_at_once
        self._records = records
        self._offload = offload
        self._awaited: dict[str, StreamsAssignmentTask] = {}
        """By group: the task whose assignment will be taken. Those of other tasks are dropped."""
        self._kept: KeptEntries[str, StreamsAssignmentTask] = KeptEntries(self._awaited.get, lambda task: task)

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

    def is_due(self, group: StreamsGroup, interval_ms: int, step: Step) -> bool:
        """Tell whether the interval has passed since the last assignment."""
        last_ms = group.assignment_timestamp_ms
        # After the clock was set back an assignment is due at once; Kafka waits until the clock has caught up.
        return not last_ms or not last_ms <= step.timestamp_ms < last_ms + interval_ms

    def update(
        self, group: StreamsGroup, configured: ConfiguredTopology, configs: Mapping[str, str], step: Step
    ) -> None:
        """Compute a small assignment at once, and have a large one computed; the old one holds until then."""
        offload = self._offload
        if self._is_awaited(group):
            return
        if offload is None or size_of(group, configured, configs) <= self._most_at_once:
            self._put(group, task_of(group, configured, configs).run(), step)
        elif offload.has_room:
            task = task_of(group, configured, configs)
            self._kept.keep(group.group_id)
            self._awaited[group.group_id] = task
            offload.begin(task)

    def _is_awaited(self, group: StreamsGroup) -> bool:
        awaited = self._awaited.get(group.group_id)
        return awaited is not None and awaited.incarnation is group.incarnation

    def put_awaited(self, group: StreamsGroup | None, computed: ComputedStreamsAssignment, step: Step) -> None:
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

    def _put(self, group: StreamsGroup, computed: ComputedStreamsAssignment, step: Step) -> None:
        """Give the group the target assignment of the epoch that it was computed for; where the group is in a later
        epoch by now, the next assignment follows.

        The record of the epoch is the last one. So where a crash leaves a log with some of the targets only, the next
        coordinator finds a group that needs an assignment; tasks stay with their owners until then.
        """
        step.prepared = computed.batches
        for member_id in computed.written:
            if member_id in group.members:
                group.target_assignment[member_id] = computed.targets[member_id]
            else:
                step.append(target_tombstone(group.group_id, member_id))
        for member_id, target in computed.targets.items():
            known = group.target_assignment.get(member_id)
            if member_id in group.members and known is not target and known != target:
                self._records.change(target_record(group.group_id, member_id, target), step)
        epoch = computed.task.group_epoch
        self._records.change(target_epoch_record(group.group_id, epoch, step.timestamp_ms), step)
        step.because(group.group_id, f"new target assignment for epoch {epoch} by {computed.task.assignor}")
