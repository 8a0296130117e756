"""The target assignment of a share group: what each member should have, of what is initialized."""

from __future__ import annotations

from ..assignors.model import Assignment
from ..common.config import GroupConfig
from ..common.topics import TopicsView
from ..modern.assignment_tasks import AssignmentOffload
from ..modern.target_assignments import TargetAssignments
from .share_assignment_tasks import ShareAssignmentTask
from .share_group import ShareGroup
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
            assignable=self._assignable(group),
            is_homogeneous=group.is_homogeneous,
        )
