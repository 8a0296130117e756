"""A leader proposes who is in sync: AlterPartition (KIP-497, KIP-841, KIP-903), by Kafka's rules.

These are `ReplicationControlManager.alterPartition` and `validateAlterPartitionData`. The partition epoch is that of
the state which the leader knows: a proposal that crossed with another change is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from pykbroker.long_work import LongWork
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.brokers import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    BrokerState,
)
from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord
from pykbroker.protocol.schema import Message

from .brokers import check_epoch
from .controller_state import ControllerState
from .elections import STEPS_PER_CHANGE, PartitionElections
from .image import TopicState
from .partition_change import RECOVERED, RECOVERING
from .partition_state import NO_LEADER_CHANGE, PartitionState

NOT_CHECKED = -1
"""In place of a broker epoch: version 2 has none."""


def alter_partition(
    state: ControllerState, request: AlterPartitionRequest
) -> LongWork[tuple[list[Message], AlterPartitionResponse]]:
    """Every partition is answered for itself, with its state behind the change."""
    response = AlterPartitionResponse()
    if not request.topics:
        return [], response
    try:
        check_epoch(state, request.broker_id, request.broker_epoch)
    except ApiError as error:
        response.error_code = error.code
        return [], response
    records: list[Message] = []
    elections = PartitionElections(state)
    for topic_data in request.topics:
        topic_id = bytes(topic_data.topic_id)
        topic = state.image.topic_by_id(topic_id)
        rows = []
        for wanted in topic_data.partitions:
            row = AlterPartitionResponsePartitionData(partition_index=wanted.partition_index)
            try:
                record = _alter(state, elections, topic, request.broker_id, wanted, row)
                if record is not None:
                    records.append(record)
            except ApiError as error:
                row.error_code = error.code
            rows.append(row)
            yield STEPS_PER_CHANGE
        response.topics.append(AlterPartitionResponseTopicData(topic_id=topic_id, partitions=rows))
    return records, response


def _alter(
    state: ControllerState,
    elections: PartitionElections,
    topic: TopicState | None,
    broker_id: int,
    wanted: AlterPartitionRequestPartitionData,
    row: AlterPartitionResponsePartitionData,
) -> PartitionChangeRecord | None:
    """Fill in the row. Raises ApiError."""
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(wanted.partition_index)
    if partition is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    new_isr = _proposed(wanted)
    _check(state, partition, broker_id, wanted, new_isr)
    change = elections.change(topic, wanted.partition_index)
    change.isr = [each.broker_id for each in new_isr]
    change.recovery_state = wanted.leader_recovery_state
    record = change.record()
    if record is not None:
        partition = partition.changed_by(record)
        if record.leader not in (broker_id, NO_LEADER_CHANGE):
            # A reassignment is complete by this, and the leader is not among the replicas any more.
            row.error_code = ErrorCode.NEW_LEADER_ELECTED
            return record
    row.leader_id, row.leader_epoch = partition.leader, partition.leader_epoch
    row.isr, row.leader_recovery_state = list(partition.isr), partition.leader_recovery_state
    row.partition_epoch = partition.partition_epoch
    return record


def _proposed(wanted: AlterPartitionRequestPartitionData) -> Sequence[BrokerState]:
    if wanted.new_isr_with_epochs:
        return wanted.new_isr_with_epochs
    return [BrokerState(broker_id=each, broker_epoch=NOT_CHECKED) for each in wanted.new_isr]


def _check(
    state: ControllerState,
    partition: PartitionState,
    broker_id: int,
    wanted: AlterPartitionRequestPartitionData,
    new_isr: Sequence[BrokerState],
) -> None:
    """Raises ApiError."""
    if wanted.leader_epoch > partition.leader_epoch or wanted.partition_epoch > partition.partition_epoch:
        raise ApiError(ErrorCode.NOT_CONTROLLER)  # Another controller has told it what this one does not know.
    if wanted.leader_epoch < partition.leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
    if broker_id != partition.leader:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if wanted.partition_epoch < partition.partition_epoch:
        raise ApiError(ErrorCode.INVALID_UPDATE_VERSION)
    ids = [each.broker_id for each in new_isr]
    if len(set(ids)) != len(ids) or not set(ids) <= set(partition.replicas) or partition.leader not in ids:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if wanted.leader_recovery_state not in (RECOVERED, RECOVERING):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if wanted.leader_recovery_state == RECOVERING and (len(ids) > 1 or partition.leader_recovery_state == RECOVERED):
        raise ApiError(ErrorCode.INVALID_REQUEST)
    if not all(_may_join(state, each) for each in new_isr):
        raise ApiError(ErrorCode.INELIGIBLE_REPLICA)


def _may_join(state: ControllerState, proposed: BrokerState) -> bool:
    """The epoch tells a broker that was in sync from its successor, whose log may be shorter."""
    broker = state.image.brokers.get(proposed.broker_id)
    if broker is None or not state.is_active(broker.id):
        return False
    return proposed.broker_epoch in (NOT_CHECKED, broker.epoch)
