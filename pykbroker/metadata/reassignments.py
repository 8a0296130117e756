"""Reassignments of a partition's replicas: AlterPartitionReassignments (KIP-455, KIP-860), by Kafka's rules.

A partition on its way has old and new replicas; those to be removed go when all others are in sync, which
`partition_change` sees to. Kafka has this in `ReplicationControlManager`, `PartitionReassignmentReplicas` and
`PartitionReassignmentRevert`.
"""

from __future__ import annotations

from pykbroker.long_work import LongWork
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord
from pykbroker.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from pykbroker.protocol.schema import Message

from .controller_state import ControllerState
from .elections import STEPS_PER_CHANGE, PartitionElections
from .image import TopicState
from .partition_change import Election
from .partition_state import PartitionState
from .topics import check_replicas


def alter_partition_reassignments(
    state: ControllerState, request: AlterPartitionReassignmentsRequest
) -> LongWork[tuple[list[Message], AlterPartitionReassignmentsResponse]]:
    """Every partition is answered for itself. What is there already is granted, and nothing changes.

    A request without topics has an answer of defaults, as in Kafka's `QuorumController`.
    """
    if not request.topics:
        return [], AlterPartitionReassignmentsResponse()
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None
    )
    elections = PartitionElections(state)
    records: list[Message] = []
    for topic in request.topics:
        answers = []
        for wanted in topic.partitions:
            answer = ReassignablePartitionResponse(partition_index=wanted.partition_index, error_message=None)
            try:
                found = _find(state, topic.name, wanted.partition_index)
                if wanted.replicas is None:
                    record = _cancel(elections, found, wanted.partition_index)
                else:
                    may_change = request.allow_replication_factor_change
                    record = _change(state, elections, found, wanted, may_change_factor=may_change)
                if record is not None:
                    records.append(record)
            except ApiError as error:
                answer.error_code, answer.error_message = error.code, error.message
            answers.append(answer)
            yield STEPS_PER_CHANGE
        response.responses.append(ReassignableTopicResponse(name=topic.name, partitions=answers))
    return records, response


def _find(state: ControllerState, name: str, index: int) -> TopicState:
    """Raises ApiError."""
    topic = state.image.topic(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if index not in topic.partitions:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    return topic


def _change(
    state: ControllerState,
    elections: PartitionElections,
    topic: TopicState,
    wanted: ReassignablePartition,
    *,
    may_change_factor: bool,
) -> PartitionChangeRecord | None:
    """Raises ApiError."""
    target = list(wanted.replicas or ())
    partition = topic.partitions[wanted.partition_index]
    check_replicas(state, target)
    if not may_change_factor and len(target) != (factor := _factor(partition)):
        reason = f"The replication factor is changed from {factor} to {len(target)}"
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
    removing = sorted(set(partition.replicas) - set(target))
    adding = sorted(set(target) - set(partition.replicas))
    change = elections.change(topic, wanted.partition_index)
    change.election = Election.ONLINE
    change.replicas = [*target, *removing]
    change.removing = removing or None
    change.adding = adding or None
    return change.record()


def _factor(partition: PartitionState) -> int:
    """Return the replication factor that a partition is going to have."""
    going = {*partition.replicas, *partition.adding_replicas} - {*partition.removing_replicas}
    return len(going) if partition.is_reassigning else len(partition.replicas)


def _cancel(elections: PartitionElections, topic: TopicState, index: int) -> PartitionChangeRecord | None:
    """Back to the replicas that the partition had. Raises ApiError."""
    partition = topic.partitions[index]
    if not partition.is_reassigning:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = [each for each in partition.replicas if each not in partition.adding_replicas]
    isr = [each for each in partition.isr if each not in partition.adding_replicas]
    if not replicas:
        reason = "Invalid replica assignment: addingReplicas contains all replicas."
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    if not isr:
        # Only new replicas are in sync: whoever leads now may lack something.
        if not elections.may_be_unclean(topic):
            reason = (
                f"Unable to revert partition assignment for {topic.name}:{index} because it would require an unclean "
                "leader election."
            )
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        isr = [replicas[0]]
    change = elections.change(topic, index)
    change.isr, change.replicas, change.removing, change.adding = isr, replicas, [], []
    return change.record()
