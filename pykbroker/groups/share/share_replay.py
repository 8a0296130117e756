"""Replay: the changes that the records of a share group make to the groups of a shard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pykbroker.protocol.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
)

from ..assignors.model import Assignment
from ..common.group import Group
from ..modern.modern_member import LEAVING_EPOCH
from ..modern.modern_replay import ModernReplay, Partitioned
from .share_group import ShareGroup
from .share_group_member import ShareGroupMember
from .share_records import RECORDS
from .state_partitions import StatePartitions


class ShareReplay(ModernReplay[ShareGroup, ShareGroupMember, Assignment]):
    """The replay applies the records of share groups."""

    kind = ShareGroup
    least_member_epoch = LEAVING_EPOCH

    def __init__(self, groups: dict[str, Group]) -> None:
        super().__init__(groups, RECORDS)
        self._changes[ShareGroupStatePartitionMetadataKey] = self._put_states
        self._removals[ShareGroupStatePartitionMetadataKey] = self._remove_states

    def _new_group(self, group_id: str) -> ShareGroup:
        return ShareGroup(group_id)

    def _new_member(self, member_id: str) -> ShareGroupMember:
        return ShareGroupMember(member_id=member_id)

    def _target_of(self, value: ShareGroupTargetAssignmentMemberValue) -> Assignment:
        return {bytes(each.topic_id): frozenset(each.partitions) for each in value.topic_partitions}

    def _put_states(
        self, key: ShareGroupStatePartitionMetadataKey, value: ShareGroupStatePartitionMetadataValue
    ) -> None:
        self._group(key.group_id).put_states(StatePartitions.of_record(value))

    def _remove_states(self, group: ShareGroup, key: ShareGroupStatePartitionMetadataKey) -> None:
        group.put_states(None)

    def _partitions_of(self, value: object) -> Iterable[Sequence[Partitioned]]:
        match value:
            case ShareGroupTargetAssignmentMemberValue():
                return (value.topic_partitions,)
            case ShareGroupCurrentMemberAssignmentValue():
                return (value.assigned_partitions,)
            case ShareGroupStatePartitionMetadataValue():
                return value.initializing_topics, value.initialized_topics
            case _:
                return ()
