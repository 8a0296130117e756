"""The records of a streams group (KIP-1071). The model is Kafka's `StreamsCoordinatorRecordHelpers`.

What a record does to the groups of a shard is in `streams_replay`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

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
from ..modern.modern_records import ModernRecords
from .streams_group_member import StreamsGroupMember
from .tasks import Tasks, TasksTuple, in_order
from .topology import StreamsTopology

NO_DESCRIPTION: Final = -1


class EpochsOfGroup(Protocol):
    """The part of a group that its record has."""

    group_id: str
    group_epoch: int
    metadata_hash: int
    validated_topology_epoch: int
    last_assignment_configs: Mapping[str, str]
    stored_description_epoch: int
    failed_description_epoch: int


def group_record(
    group_id: str,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    configs: Mapping[str, str],
    *,
    stored_description_epoch: int = NO_DESCRIPTION,
    failed_description_epoch: int = NO_DESCRIPTION,
) -> CoordinatorRecord:
    """The record of the group's epoch. configs: those that its assignments are made by.

    stored_description_epoch, failed_description_epoch: of which topology a description is kept, and could not be.
    """
    return CoordinatorRecord(
        StreamsGroupMetadataKey(group_id=group_id),
        StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_topology_epoch,
            last_assignment_configs=[LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs)],
            stored_description_topology_epoch=stored_description_epoch,
            failed_description_topology_epoch=failed_description_epoch,
        ),
    )


def group_record_of(
    group: EpochsOfGroup, *, stored_description_epoch: int, failed_description_epoch: int
) -> CoordinatorRecord:
    """The record of the group's epoch as it is, with other epochs of descriptions."""
    return group_record(
        group.group_id,
        group.group_epoch,
        group.metadata_hash,
        group.validated_topology_epoch,
        group.last_assignment_configs,
        stored_description_epoch=stored_description_epoch,
        failed_description_epoch=failed_description_epoch,
    )


def topology_record(group_id: str, topology: StreamsTopology) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), topology.value)


def topology_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(StreamsGroupTopologyKey(group_id=group_id), None)


def _written(tasks: Tasks) -> list[StreamsGroupTargetAssignmentMemberValueTaskIds]:
    return [
        StreamsGroupTargetAssignmentMemberValueTaskIds(subtopology_id=subtopology_id, partitions=partitions)
        for subtopology_id, partitions in in_order(tasks)
    ]


def _target_value(target: TasksTuple) -> StreamsGroupTargetAssignmentMemberValue:
    return StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_written(target.active),
        standby_tasks=_written(target.standby),
        warmup_tasks=_written(target.warmup),
    )


RECORDS: Final[ModernRecords[StreamsGroupMember, TasksTuple]] = ModernRecords(
    group_key=StreamsGroupMetadataKey,
    member_key=StreamsGroupMemberMetadataKey,
    assignment_key=StreamsGroupCurrentMemberAssignmentKey,
    target_key=StreamsGroupTargetAssignmentMemberKey,
    target_epoch_key=StreamsGroupTargetAssignmentMetadataKey,
    target_epoch_value=StreamsGroupTargetAssignmentMetadataValue,
    target_value=_target_value,
)
"""The records that groups of all new protocols have."""

assignment_record = RECORDS.assignment
member_record = RECORDS.member
