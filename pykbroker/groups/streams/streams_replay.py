"""Replay: the changes that the records of a streams group make to the groups of a shard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pykbroker.protocol.messages.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from pykbroker.state_machine import BadRecord

from ..common.group import Group
from ..common.topics import TopicsView
from ..modern.modern_member import STATIC_LEAVING_EPOCH
from ..modern.modern_replay import ModernReplay, Partitioned
from .streams_group import StreamsGroup
from .streams_group_member import StreamsGroupMember
from .streams_records import RECORDS
from .tasks import TasksTuple, tasks_of
from .topology import StreamsTopology


class StreamsReplay(ModernReplay[StreamsGroup, StreamsGroupMember, TasksTuple]):
    """The replay applies the records of streams groups."""

    kind = StreamsGroup
    least_member_epoch = STATIC_LEAVING_EPOCH

    def __init__(self, groups: dict[str, Group], topics: TopicsView) -> None:
        super().__init__(groups, RECORDS)
        self._topics = topics
        self._changes[StreamsGroupTopologyKey] = self._put_topology
        self._removals[StreamsGroupTopologyKey] = self._remove_topology

    def _new_group(self, group_id: str) -> StreamsGroup:
        return StreamsGroup(group_id, self._topics)

    def _new_member(self, member_id: str) -> StreamsGroupMember:
        return StreamsGroupMember(member_id=member_id)

    def _put_metadata(self, key: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue) -> None:
        super()._put_metadata(key, value)
        group = self._group(key.group_id)
        group.validated_topology_epoch = value.validated_topology_epoch
        group.stored_description_epoch = value.stored_description_topology_epoch
        group.failed_description_epoch = value.failed_description_topology_epoch
        group.last_assignment_configs = {config.key: config.value for config in value.last_assignment_configs or ()}

    def _put_topology(self, key: StreamsGroupTopologyKey, value: StreamsGroupTopologyValue) -> None:
        self._group(key.group_id).topology = StreamsTopology(value)

    def _remove_topology(self, group: StreamsGroup, key: StreamsGroupTopologyKey) -> None:
        group.topology = None

    def _target_of(self, value: StreamsGroupTargetAssignmentMemberValue) -> TasksTuple:
        return TasksTuple(tasks_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks))

    def _check(self, kind: object, value: Any) -> None:
        super()._check(kind, value)
        if kind is StreamsGroupTopologyKey and value.epoch < 0:  # clients choose it: no other number is too high
            raise BadRecord(f"there is no epoch {value.epoch} of a topology")

    def _partitions_of(self, value: object) -> Iterable[Sequence[Partitioned]]:
        match value:
            case StreamsGroupTargetAssignmentMemberValue():
                return value.active_tasks, value.standby_tasks, value.warmup_tasks
            case StreamsGroupCurrentMemberAssignmentValue():
                return (
                    value.active_tasks,
                    value.standby_tasks,
                    value.warmup_tasks,
                    value.active_tasks_pending_revocation,
                    value.standby_tasks_pending_revocation,
                    value.warmup_tasks_pending_revocation,
                )
            case _:
                return ()
