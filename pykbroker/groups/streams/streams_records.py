"""The records of a streams group (KIP-1071). The model is Kafka's `StreamsCoordinatorRecordHelpers`.

What a record does to the groups of a shard is in `streams_replay`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pykbroker.protocol.messages.streams_group_records import (
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMemberValueTaskIds,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
)

from ..common.records import CoordinatorRecord
from .streams_group_member import StreamsGroupMember
from .tasks import Tasks, TasksTuple, in_order
from .topology import StreamsTopology


def group_record(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> CoordinatorRecord:
    """The record of the group's epoch. configs: those that its assignments are made by."""
    return CoordinatorRecord(
        StreamsGroupMetadataKey(group_id=group_id),
        StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_topology_epoch,
            last_assignment_configs=[LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs)],
        ),
    )


def group_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupMetadataKey(group_id=group_id), None)


def topology_record(group_id: str, topology: StreamsTopology) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), topology.value)


def topology_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), None)


def member_record(group_id: str, member: StreamsGroupMember) -> CoordinatorRecord:
    """The record of what a member said of itself."""
    key = StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.metadata_value())


def assignment_record(group_id: str, member: StreamsGroupMember) -> CoordinatorRecord:
    """The record of the current assignment of a member."""
    key = StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.assignment_value())


def target_record(group_id: str, member_id: str, target: TasksTuple) -> CoordinatorRecord:
    """The record of the target assignment of a member."""
    return CoordinatorRecord(
        StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        StreamsGroupTargetAssignmentMemberValue(
            active_tasks=_written(target.active),
            standby_tasks=_written(target.standby),
            warmup_tasks=_written(target.warmup),
        ),
    )


def target_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        StreamsGroupTargetAssignmentMetadataKey(group_id=group_id),
        StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


def target_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: str, member_id: str) -> Iterator[CoordinatorRecord]:
    """The records that delete a member, in an order that counts: its assignment has to go first."""
    yield CoordinatorRecord(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    yield target_tombstone(group_id, member_id)
    yield CoordinatorRecord(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def _written(tasks: Tasks) -> list[StreamsGroupTargetAssignmentMemberValueTaskIds]:
    return [
        StreamsGroupTargetAssignmentMemberValueTaskIds(subtopology_id=subtopology_id, partitions=partitions)
        for subtopology_id, partitions in in_order(tasks)
    ]
