"""Replay: the changes that the records of a consumer group make to the groups of a shard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pykbroker.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
)

from ..assignors.model import Assignment
from ..common.group import Group
from ..modern.modern_member import STATIC_LEAVING_EPOCH
from ..modern.modern_replay import ModernReplay, Partitioned
from .consumer_group import ConsumerGroup
from .consumer_group_member import ConsumerGroupMember
from .consumer_records import RECORDS
from .resolved_regular_expression import ResolvedRegularExpression


class ConsumerReplay(ModernReplay[ConsumerGroup, ConsumerGroupMember, Assignment]):
    """The replay applies the records of consumer groups."""

    kind = ConsumerGroup
    least_member_epoch = STATIC_LEAVING_EPOCH

    def __init__(self, groups: dict[str, Group]) -> None:
        super().__init__(groups, RECORDS)
        self._changes[ConsumerGroupRegularExpressionKey] = self._put_regex
        self._removals[ConsumerGroupRegularExpressionKey] = self._remove_regex
        self._changes[ConsumerGroupPartitionMetadataKey] = self._put_partition_metadata
        self._removals[ConsumerGroupPartitionMetadataKey] = self._remove_partition_metadata

    def _new_group(self, group_id: str) -> ConsumerGroup:
        return ConsumerGroup(group_id)

    def _new_member(self, member_id: str) -> ConsumerGroupMember:
        return ConsumerGroupMember(member_id=member_id)

    def _target_of(self, value: ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
        return {bytes(each.topic_id): frozenset(each.partitions) for each in value.topic_partitions}

    def _put_regex(self, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue) -> None:
        resolved = ResolvedRegularExpression(frozenset(value.topics), value.version, value.timestamp)
        self._group(key.group_id).resolved_regexes[key.regular_expression] = resolved

    def _remove_regex(self, group: ConsumerGroup, key: ConsumerGroupRegularExpressionKey) -> None:
        group.resolved_regexes.pop(key.regular_expression, None)

    def _put_partition_metadata(
        self, key: ConsumerGroupPartitionMetadataKey, value: ConsumerGroupPartitionMetadataValue
    ) -> None:
        """Note that the record exists. The metadata hash has replaced it (KIP-1101), so it is to be deleted."""
        self._group(key.group_id).has_partition_metadata_record = True

    def _remove_partition_metadata(self, group: ConsumerGroup, key: ConsumerGroupPartitionMetadataKey) -> None:
        group.has_partition_metadata_record = False

    def _partitions_of(self, value: object) -> Iterable[Sequence[Partitioned]]:
        match value:
            case ConsumerGroupTargetAssignmentMemberValue():
                return (value.topic_partitions,)
            case ConsumerGroupCurrentMemberAssignmentValue():
                return value.assigned_partitions, value.partitions_pending_revocation
            case _:
                return ()
