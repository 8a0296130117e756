"""The target assignment of a streams group: which member should have which task, computed when the group changed.

None is computed while a group that was empty waits for more members (`membership`).
"""

from __future__ import annotations

from ..modern.target_assignments import TargetAssignments
from .assignment_tasks import StreamsAssignmentTask, size_of, task_of
from .streams_group import StreamsGroup
from .streams_group_member import StreamsGroupMember
from .tasks import TasksTuple


class StreamsTargetAssignments(TargetAssignments[StreamsGroup, StreamsGroupMember, TasksTuple]):
    """The target assignments of a shard's streams groups are computed here, for the topology that is configured."""

    def _size_of(self, group: StreamsGroup) -> int:
        return size_of(group)

    def _task_of(self, group: StreamsGroup) -> StreamsAssignmentTask:
        return task_of(group)
