"""The target assignment of a share group: what each member should have, of what is initialized.

A new target assignment is due in a member's heartbeat, and not more often than the assignment interval allows
(KIP-1263); until then the old one holds. A large one is computed beside the event loop. The model is Kafka's
`TargetAssignmentBuilder`.
"""

from __future__ import annotations

from pykbroker.kept_entries import KeptEntries

from ..common.config import GroupConfig
from ..common.context import Step
from ..common.topics import TopicsView
from .share_assignment_tasks import ComputedShareAssignment, ShareAssignmentOffload, ShareAssignmentTask
from .share_group import ShareGroup
from .share_records import target_epoch_record, target_record, target_tombstone
from .share_replay import ShareReplay


class ShareTargets:
    """The target assignments of a shard's share groups are computed here.

    offload: computes large assignments; where it is None, they are computed at once.
    """

    def __init__(
        self,
        config: GroupConfig,
        records: ShareReplay,
        topics: TopicsView,
        offload: ShareAssignmentOffload | None = None,
    ) -> None:
        self._most_at_once = config.consumer_assigned_at_once
        self._records = records
        self._topics = topics
        self._offload = offload
        self._awaited: dict[str, ShareAssignmentTask] = {}
        """By group: the task whose assignment will be taken. Those of other tasks are dropped."""
        self._kept: KeptEntries[str, ShareAssignmentTask] = KeptEntries(self._awaited.get, lambda task: task)

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

    def is_pending(self, group: ShareGroup) -> bool:
        """Tell whether partitions of subscribed topics are initialized that no member should have yet, or the other way
        round. It is looked at anew only where the group has changed since."""
        if group.assigned_as_of == group.changes:
            return False
        assignable = self._assignable(group)
        assigned: dict[bytes, set[int]] = {topic_id: set() for topic_id in assignable}
        for target in group.target_assignment.values() if assignable else ():
            for topic_id in target.keys() & assigned.keys():
                assigned[topic_id].update(target[topic_id])
        is_pending = bool(group.members) and assigned != assignable
        if not is_pending:
            group.assigned_as_of = group.changes
        return is_pending

    def _assignable(self, group: ShareGroup) -> dict[bytes, frozenset[int]]:
        """The partitions of subscribed topics that are initialized, and exist."""
        assignable = {}
        for topic_id, topic in group.state_partitions.initialized.items():
            if not group.is_subscribed_to(topic.name) or self._topics.topic_id(topic.name) != topic_id:
                continue
            count = self._topics.partition_count(topic_id)
            partitions = topic.partitions
            if partitions and max(partitions) >= count:
                partitions = frozenset(index for index in partitions if index < count)
            if partitions:
                assignable[topic_id] = partitions
        return assignable

    def update_if_due(self, group: ShareGroup, interval_ms: int, step: Step) -> None:
        if group.group_epoch > group.assignment_epoch and _is_due(group, interval_ms, step):
            self._update(group, step)

    def _update(self, group: ShareGroup, step: Step) -> None:
        """Compute a small assignment at once, and have a large one computed; the old one holds until then."""
        offload = self._offload
        awaited = self._awaited.get(group.group_id)
        if awaited is not None and awaited.incarnation is group.incarnation:
            return
        if offload is None or self._size_of(group) <= self._most_at_once:
            self._put(group, self._task(group).run(), step)
        elif offload.has_room:
            task = self._task(group)
            self._kept.keep(group.group_id)
            self._awaited[group.group_id] = task
            offload.begin(task)

    def _size_of(self, group: ShareGroup) -> int:
        partitions = sum(len(topic.partitions) for topic in group.state_partitions.initialized.values())
        return len(group.members) + len(group.subscribed_topic_names) + partitions

    def _task(self, group: ShareGroup) -> ShareAssignmentTask:
        named = ((name, self._topics.topic_id(name)) for name in group.topic_names)
        return ShareAssignmentTask(
            group.group_id,
            group.incarnation,
            group.group_epoch,
            group.members.copy(),
            group.target_assignment.copy(),
            {name: topic_id for name, topic_id in named if topic_id is not None},
            self._assignable(group),
            group.is_homogeneous,
        )

    def put_awaited(self, group: ShareGroup | None, computed: ComputedShareAssignment, step: Step) -> None:
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

    def _put(self, group: ShareGroup, computed: ComputedShareAssignment, step: Step) -> None:
        """Give the group the target assignment of the epoch that it was computed for. The record of the epoch is the
        last one: where a crash leaves some of the targets only, the next coordinator computes an assignment."""
        step.prepared = computed.batches
        for member_id in computed.written:
            if member_id in group.members:
                group.put_target(member_id, computed.targets[member_id])
            else:
                step.append(target_tombstone(group.group_id, member_id))
        for member_id in group.members:
            target = computed.targets.get(member_id)
            if target is not None and target != group.target_assignment.get(member_id):
                self._records.change(target_record(group.group_id, member_id, target), step)
        epoch = computed.task.group_epoch
        self._records.change(target_epoch_record(group.group_id, epoch, step.timestamp_ms), step)
        step.because(group.group_id, f"new target assignment for epoch {epoch} by {computed.task.assignor}")


def _is_due(group: ShareGroup, interval_ms: int, step: Step) -> bool:
    """Tell whether an assignment is due. After the clock was set back one is at once; Kafka waits for the clock."""
    last_ms = group.assignment_timestamp_ms
    return not last_ms or not last_ms <= step.timestamp_ms < last_ms + interval_ms
