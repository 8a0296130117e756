"""The target assignment of a consumer group (KIP-848): by the assignor that its members ask for."""

from __future__ import annotations

from ..assignors.model import Assignment
from ..common.config import GroupConfig
from ..common.topics import TopicsView, topic_ids
from ..modern.assignment_tasks import AssignmentOffload
from ..modern.target_assignments import TargetAssignments
from .assignment_tasks import AssignmentTask, size_of
from .consumer_group import ConsumerGroup
from .consumer_group_member import ConsumerGroupMember
from .consumer_replay import ConsumerReplay


class ConsumerTargetAssignments(TargetAssignments[ConsumerGroup, ConsumerGroupMember, Assignment]):
    """The target assignments of a shard's consumer groups are computed here."""

    def __init__(
        self,
        config: GroupConfig,
        records: ConsumerReplay,
        topics: TopicsView,
        offload: AssignmentOffload | None = None,
    ) -> None:
        super().__init__(config, records, offload)
        self._default = config.consumer_assignors[0]
        self._offered = config.consumer_assignors
        self._topics = topics

    def _size_of(self, group: ConsumerGroup) -> int:
        return size_of(group, self._topics, topic_ids(self._topics, group.topic_names))

    def _task_of(self, group: ConsumerGroup) -> AssignmentTask:
        named = ((name, self._topics.topic_id(name)) for name in group.topic_names)
        return AssignmentTask(
            group_id=group.group_id,
            incarnation=group.incarnation,
            group_epoch=group.group_epoch,
            members=group.members.copy(),
            before=group.target_assignment.copy(),
            assignor_name=self.assignor_of(group),
            resolved_regexes=group.resolved_regexes.copy(),
            topic_ids={name: topic_id for name, topic_id in named if topic_id is not None},
            topics=self._topics.as_of_now(),
            is_homogeneous=group.is_homogeneous,
        )

    def assignor_of(self, group: ConsumerGroup) -> str:
        """The assignor that most members ask for, if it is still configured; else the default."""
        preferred = group.preferred_assignor
        return preferred if preferred in self._offered else self._default
