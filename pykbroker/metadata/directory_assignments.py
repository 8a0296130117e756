"""The log directory of each replica of a broker: AssignReplicasToDirs (KIP-858).

Kafka's rules are in `ReplicationControlManager.handleAssignReplicasToDirs`. A directory that the broker has not
registered is one that has failed: what is there is not in sync any more.
"""

from __future__ import annotations

from pykbroker.long_work import LongWork
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.log_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)
from pykbroker.protocol.schema import Message

from .brokers import check_epoch
from .controller_state import ControllerState
from .elections import STEPS_PER_CHANGE, PartitionElections, leader_and_isr_records
from .image import TopicState
from .partition_index import PartitionKey


def assign_replicas_to_dirs(
    state: ControllerState, request: AssignReplicasToDirsRequest
) -> LongWork[tuple[list[Message], AssignReplicasToDirsResponse]]:
    """Every partition is answered for itself; one that lies there already changes nothing."""
    response = AssignReplicasToDirsResponse()
    try:
        broker = check_epoch(state, request.broker_id, request.broker_epoch)
    except ApiError as error:
        response.error_code = error.code
        return [], response
    elections = PartitionElections(state)
    records: list[Message] = []
    lost: set[PartitionKey] = set()
    for directory in request.directories:
        directory_id = bytes(directory.id)
        answer = AssignReplicasToDirsResponseDirectoryData(id=directory_id)
        for asked in directory.topics:
            topic_id = bytes(asked.topic_id)
            topic = state.image.topic_by_id(topic_id)
            rows = []
            for each in asked.partitions:
                row = AssignReplicasToDirsResponsePartitionData(partition_index=each.partition_index)
                try:
                    found = _find(topic, each.partition_index, broker.id)
                    change = elections.change(found, each.partition_index)
                    change.directories = {broker.id: directory_id}
                    record = change.record()
                    if record is not None:
                        records.append(record)
                    if not broker.has_online(directory_id):
                        lost.add((topic_id, each.partition_index))
                except ApiError as error:
                    row.error_code = error.code
                rows.append(row)
                yield STEPS_PER_CHANGE
            answer.topics.append(AssignReplicasToDirsResponseTopicData(topic_id=topic_id, partitions=rows))
        response.directories.append(answer)
    return [*records, *(yield from leader_and_isr_records(state, lost, gone=broker.id))], response


def _find(topic: TopicState | None, index: int, broker_id: int) -> TopicState:
    """Raises ApiError."""
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(index)
    if partition is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if broker_id not in partition.replicas:
        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return topic
