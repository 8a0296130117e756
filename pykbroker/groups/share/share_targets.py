"""The target assignment of a share group: what each member should have, of what is initialized."""

from __future__ import annotations

from collections.abc import Mapping

from ..assignors.model import Assignment
from ..common.config import GroupConfig
from ..common.topics import TopicsView
from ..modern.assignment_tasks import AssignmentOffload, ComputedAssignment
from ..modern.target_assignments import TargetAssignments
from .share_assignment_tasks import ComputedShareAssignment, ShareAssignmentTask, together
from .share_group import Assignable, ShareGroup
from .share_group_member import ShareGroupMember
from .share_replay import ShareReplay


class ShareTargets(TargetAssignments[ShareGroup, ShareGroupMember, Assignment]):
    """The target assignments of a shard's share groups are computed here."""

    def __init__(
        self, config: GroupConfig, records: ShareReplay, topics: TopicsView, offload: AssignmentOffload | None = None
    ) -> None:
        super().__init__(config, records, offload)
        self._topics = topics

    def is_pending(self, group: ShareGroup) -> bool:
        """Tell whether partitions of subscribed topics are initialized that no member should have yet, or the other way
        round."""
        if not group.members:
            return False
        if group.assigned is None:
            group.assigned = together(group.target_assignment.values(), self.assignable(group))
        assigned, assignable = group.assigned, self.assignable(group)
        if group.level is not None and group.level[0] is assigned and group.level[1] is assignable:
            return False
        is_pending = not assigned.items() >= assignable.items()
        group.level = None if is_pending else (assigned, assignable)
        return is_pending

    def assignable(self, group: ShareGroup) -> Mapping[bytes, frozenset[int]]:
        """The partitions of subscribed topics that are initialized and exist, by topic id. They are looked up anew only
        where the group has changed since, or has looked at topics that have."""
        known = group.assignable
        if known is None or known[:2] != (group.changes, group.seen_topic_change):
            known = Assignable(group.changes, group.seen_topic_change, self._look_up_assignable(group))
            group.assignable = known
        return known.partitions

    def _look_up_assignable(self, group: ShareGroup) -> dict[bytes, frozenset[int]]:
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

    def _has_put(self, group: ShareGroup, computed: ComputedAssignment[ShareGroupMember, Assignment]) -> None:
        """Remember what was assigned. Where a member has come or left meanwhile, the next assignment follows."""
        assert isinstance(computed, ComputedShareAssignment)
        group.assigned = computed.assigned

    def _size_of(self, group: ShareGroup) -> int:
        partitions = sum(len(topic.partitions) for topic in group.state_partitions.initialized.values())
        return len(group.members) + len(group.subscribed_topic_names) + partitions

    def _task_of(self, group: ShareGroup) -> ShareAssignmentTask:
        named = ((name, self._topics.topic_id(name)) for name in group.topic_names)
        return ShareAssignmentTask(
            group_id=group.group_id,
            incarnation=group.incarnation,
            group_epoch=group.group_epoch,
            members=group.members.copy(),
            before=group.target_assignment.copy(),
            topic_ids={name: topic_id for name, topic_id in named if topic_id is not None},
            assignable=self.assignable(group),
            is_homogeneous=group.is_homogeneous,
        )
