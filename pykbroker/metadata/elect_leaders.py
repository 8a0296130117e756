"""Leaders elected on request (ElectLeaders, KIP-460) and from time to time, as in Kafka's `ReplicationControlManager`.

Preferred replicas get their partitions back where `auto.leader.rebalance.enable` wants it. Partitions that nobody leads
get an unclean leader where their topic allows it, soon after that was allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pykbroker.long_work import LongWork, each_of, ordered
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.metadata_records import PartitionChangeRecord
from pykbroker.protocol.messages.reassignments import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from pykbroker.protocol.schema import Message

from .controller_state import ControllerState
from .elections import STEPS_PER_CHANGE, PartitionElections
from .image import TopicState
from .partition_change import Election
from .partition_index import PartitionKey
from .partition_state import NO_LEADER

PREFERRED, UNCLEAN = 0, 1
MAX_ELECTIONS: Final = 1000
"""In one go, of those that nobody asked for."""


def elect_leaders(
    state: ControllerState, request: ElectLeadersRequest
) -> LongWork[tuple[list[Message], ElectLeadersResponse]]:
    """Elect leaders. Where all partitions are asked for, those that need no election are not answered."""
    if request.topic_partitions is not None and not request.topic_partitions:
        return [], ElectLeadersResponse()  # whatever the type of the election is, as in Kafka's `QuorumController`
    if request.election_type not in (PREFERRED, UNCLEAN):
        unknown = f"Unknown election type {request.election_type}"
        return [], (yield from error_response(request, ApiError(ErrorCode.INVALID_REQUEST, unknown)))
    elections = PartitionElections(state)
    records: list[Message] = []
    response = ElectLeadersResponse()
    everything = request.topic_partitions is None
    for asked in _asked(state, request):
        result = ReplicaElectionResult(topic=asked.topic)
        response.replica_election_results.append(result)
        for index in asked.partitions:
            yield STEPS_PER_CHANGE
            row = PartitionResult(partition_id=index, error_message=None)
            try:
                topic = _find(state, asked.topic, index)
                records.append(_elect(elections, topic, index, request.election_type))
            except ApiError as error:
                if everything and error.code == ErrorCode.ELECTION_NOT_NEEDED:
                    continue
                row.error_code, row.error_message = error.code, error.message
            result.partition_result.append(row)
    return records, response


def error_response(request: ElectLeadersRequest, error: ApiError) -> LongWork[ElectLeadersResponse]:
    """The response to a request of which nothing is done: the error stands in it and in each of its rows."""
    response = ElectLeadersResponse(error_code=error.code)
    for asked in request.topic_partitions or ():
        rows = yield from each_of(
            asked.partitions,
            lambda index: PartitionResult(partition_id=index, error_code=error.code, error_message=str(error)),
        )
        response.replica_election_results.append(ReplicaElectionResult(topic=asked.topic, partition_result=rows))
        yield 1
    return response


def _asked(state: ControllerState, request: ElectLeadersRequest) -> Iterable[TopicPartitions]:
    if request.topic_partitions is not None:
        return request.topic_partitions
    return [TopicPartitions(topic=each.name, partitions=list(each.partitions)) for each in state.image.topics.values()]


def _find(state: ControllerState, name: str, index: int) -> TopicState:
    """Raises ApiError."""
    topic = state.image.topic(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if index not in topic.partitions:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    return topic


def _elect(elections: PartitionElections, topic: TopicState, index: int, election_type: int) -> PartitionChangeRecord:
    """Raises ApiError."""
    partition = topic.partitions[index]
    preferred = election_type == PREFERRED
    if partition.leader == partition.replicas[0] if preferred else partition.leader != NO_LEADER:
        raise ApiError(ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.ELECTION_NOT_NEEDED.description)
    change = elections.change(topic, index)
    change.election = Election.PREFERRED if preferred else Election.UNCLEAN
    record = change.record()
    if record is None:
        code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if preferred else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        raise ApiError(code, code.description)
    return record


def elect_preferred(state: ControllerState) -> LongWork[list[PartitionChangeRecord]]:
    """Moves leaders back to the preferred replicas, at most MAX_ELECTIONS."""
    return _elect_some(state, state.partitions.imbalanced, Election.PREFERRED)


def elect_unclean(state: ControllerState) -> LongWork[list[PartitionChangeRecord]]:
    """Give leaders to partitions without one whose topics allow it, at most MAX_ELECTIONS."""
    return _elect_some(state, state.partitions.leaderless, Election.UNCLEAN)


def _elect_some(
    state: ControllerState, partitions: Iterable[PartitionKey], election: Election
) -> LongWork[list[PartitionChangeRecord]]:
    elections = PartitionElections(state)
    records: list[PartitionChangeRecord] = []
    for topic_id, index in (yield from ordered(partitions)):
        yield STEPS_PER_CHANGE
        if len(records) == MAX_ELECTIONS:
            break
        topic = state.image.topic_by_id(topic_id)
        assert topic is not None, "the index follows the image"
        if election is Election.PREFERRED or elections.may_be_unclean(topic):
            change = elections.change(topic, index)
            change.election = election
            record = change.record()
            if record is not None:
                records.append(record)
    return records
