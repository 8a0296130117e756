"""The five questions to share coordinators, from the protocol's messages and back: whoever asks and whoever answers
has them from here (KIP-932).

A message has share partitions of one group, by topic. Entries are made one after the other, so that a caller can have
turns in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pykbroker.client.errors import code_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import share_state as messages
from pykbroker.protocol.schema import Message
from pykbroker.sharing.coordinator.requests import (
    Delete,
    Initialize,
    Read,
    ReadSummary,
    ShareStateRequest,
    Write,
)
from pykbroker.sharing.persister import (
    Initialization,
    Outcome,
    PartitionState,
    Reading,
    SharePartitionKey,
    StateBatch,
    Writing,
)

AskedT = TypeVar("AskedT")
AnswerT = TypeVar("AnswerT", Outcome, PartitionState)


@dataclass(frozen=True, slots=True, eq=False)
class Question(Generic[AskedT, AnswerT]):
    """A question about share partitions.

    verb: in messages of errors. request: to the shard of a partition. key: of what is asked. weight: how many entries
    it has. batches_of: how many an answer has. failed: the answer that has nothing but an error.

    message: the request to another broker, about one group. response_type: its response.
    asked_in: what a request asks. result: the row of an answer in a response. response: of such rows, by topic.
    answer_in: the answer in a row of a response.
    """

    verb: str
    request: Callable[[tuple[AskedT, ...]], ShareStateRequest]
    key: Callable[[AskedT], SharePartitionKey]
    weight: Callable[[AskedT], int]
    batches_of: Callable[[AnswerT], int]
    failed: Callable[[SharePartitionKey, ErrorCode, str | None], AnswerT]
    message: Callable[[str, Iterable[AskedT]], Message]
    response_type: type[Message]
    asked_in: Callable[[Any], Iterator[AskedT]]
    result: Callable[[AnswerT], Any]
    response: Callable[[dict[bytes, dict[int, Any]]], Message]
    answer_in: Callable[[SharePartitionKey, Any], AnswerT]


def answers_in(question: Question[AskedT, AnswerT], response: Any, asked: Sequence[AskedT]) -> list[AnswerT]:
    """Return the answers of a response, one for each that was asked; UNKNOWN_SERVER_ERROR where it has none."""
    rows = {(topic.topic_id, row.partition): row for topic in response.results for row in topic.partitions}
    answers = []
    for each in asked:
        key = question.key(each)
        row = rows.get((key.topic_id, key.partition))
        if row is None:
            answers.append(question.failed(key, ErrorCode.UNKNOWN_SERVER_ERROR, "The share coordinator left it out."))
        else:
            answers.append(question.answer_in(key, row))
    return answers


def _by_topic(rows: Iterable[tuple[SharePartitionKey, Any]]) -> dict[bytes, list[Any]]:
    topics: dict[bytes, list[Any]] = {}
    for key, row in rows:
        topics.setdefault(key.topic_id, []).append(row)
    return topics


def _failed_outcome(key: SharePartitionKey, error_code: ErrorCode, message: str | None) -> Outcome:
    return Outcome(key, error_code, message)


def _failed_state(key: SharePartitionKey, error_code: ErrorCode, message: str | None) -> PartitionState:
    return PartitionState(key, error_code=error_code, error_message=message)


def _outcome_in(key: SharePartitionKey, row: Any) -> Outcome:
    return Outcome(key, code_of(row.error_code), row.error_message)


def _own_key(asked: Initialization | Reading | Writing) -> SharePartitionKey:
    return asked.key


def _one(asked: object) -> int:
    return 1


def _no_batches(answer: object) -> int:
    return 0


def _batches_of(state: PartitionState) -> int:
    return len(state.batches)


def _rows(topics: dict[bytes, dict[int, Any]]) -> Iterator[tuple[bytes, list[Any]]]:
    return ((topic_id, list(rows.values())) for topic_id, rows in topics.items())


# Initializing


def _initialize_message(group_id: str, asked: Iterable[Initialization]) -> Message:
    rows = _by_topic(
        (
            each.key,
            messages.InitializeShareGroupStateRequestPartitionData(
                partition=each.key.partition, state_epoch=each.state_epoch, start_offset=each.start_offset
            ),
        )
        for each in asked
    )
    topics = [messages.InitializeStateData(topic_id=topic_id, partitions=each) for topic_id, each in rows.items()]
    return messages.InitializeShareGroupStateRequest(group_id=group_id, topics=topics)


def _initializations_in(request: messages.InitializeShareGroupStateRequest) -> Iterator[Initialization]:
    for topic in request.topics:
        for each in topic.partitions:
            key = SharePartitionKey(request.group_id, topic.topic_id, each.partition)
            yield Initialization(key, each.state_epoch, each.start_offset)


def _initialize_result(outcome: Outcome) -> messages.InitializeShareGroupStateResponsePartitionResult:
    return messages.InitializeShareGroupStateResponsePartitionResult(
        partition=outcome.key.partition, error_code=outcome.error_code, error_message=outcome.error_message
    )


def _initialize_response(topics: dict[bytes, dict[int, Any]]) -> Message:
    results = [messages.InitializeStateResult(topic_id=each, partitions=rows) for each, rows in _rows(topics)]
    return messages.InitializeShareGroupStateResponse(results=results)


INITIALIZE: Final[Question[Initialization, Outcome]] = Question(
    "initialize share group state",
    Initialize,
    _own_key,
    _one,
    _no_batches,
    _failed_outcome,
    _initialize_message,
    messages.InitializeShareGroupStateResponse,
    _initializations_in,
    _initialize_result,
    _initialize_response,
    _outcome_in,
)


# Reading


def _read_message(group_id: str, asked: Iterable[Reading]) -> Message:
    rows = _by_topic(
        (
            each.key,
            messages.ReadShareGroupStateRequestPartitionData(
                partition=each.key.partition, leader_epoch=each.leader_epoch
            ),
        )
        for each in asked
    )
    topics = [messages.ReadStateData(topic_id=topic_id, partitions=each) for topic_id, each in rows.items()]
    return messages.ReadShareGroupStateRequest(group_id=group_id, topics=topics)


def _readings_in(
    request: messages.ReadShareGroupStateRequest | messages.ReadShareGroupStateSummaryRequest,
) -> Iterator[Reading]:
    for topic in request.topics:
        for each in topic.partitions:
            yield Reading(SharePartitionKey(request.group_id, topic.topic_id, each.partition), each.leader_epoch)


def _read_result(state: PartitionState) -> messages.ReadShareGroupStateResponsePartitionResult:
    row = messages.ReadShareGroupStateResponsePartitionResult(partition=state.key.partition)
    if state.error_code is not ErrorCode.NONE:
        row.error_code, row.error_message = state.error_code, state.error_message
        return row
    row.state_epoch, row.start_offset = state.state_epoch, state.start_offset
    row.state_batches = [_written(batch) for batch in state.batches]
    return row


def _read_response(topics: dict[bytes, dict[int, Any]]) -> Message:
    results = [messages.ReadStateResult(topic_id=each, partitions=rows) for each, rows in _rows(topics)]
    return messages.ReadShareGroupStateResponse(results=results)


def _state_in(key: SharePartitionKey, row: messages.ReadShareGroupStateResponsePartitionResult) -> PartitionState:
    if row.error_code != ErrorCode.NONE:
        return _failed_state(key, code_of(row.error_code), row.error_message)
    batches = tuple(map(_batch_in, row.state_batches))
    return PartitionState(key, state_epoch=row.state_epoch, start_offset=row.start_offset, batches=batches)


def _written(batch: StateBatch) -> messages.StateBatch:
    first, last, state, count = batch
    return messages.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)


def _batch_in(batch: messages.StateBatch) -> StateBatch:
    return StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)


READ: Final[Question[Reading, PartitionState]] = Question(
    "read share group state",
    Read,
    _own_key,
    _one,
    _batches_of,
    _failed_state,
    _read_message,
    messages.ReadShareGroupStateResponse,
    _readings_in,
    _read_result,
    _read_response,
    _state_in,
)


# Writing


def _write_message(group_id: str, asked: Iterable[Writing]) -> Message:
    rows = _by_topic(
        (
            each.key,
            messages.WriteShareGroupStateRequestPartitionData(
                partition=each.key.partition,
                state_epoch=each.state_epoch,
                leader_epoch=each.leader_epoch,
                start_offset=each.start_offset,
                delivery_complete_count=each.delivery_complete_count,
                state_batches=[_written(batch) for batch in each.batches],
            ),
        )
        for each in asked
    )
    topics = [messages.WriteStateData(topic_id=topic_id, partitions=each) for topic_id, each in rows.items()]
    return messages.WriteShareGroupStateRequest(group_id=group_id, topics=topics)


def _writings_in(request: messages.WriteShareGroupStateRequest) -> Iterator[Writing]:
    for topic in request.topics:
        for each in topic.partitions:
            yield Writing(
                SharePartitionKey(request.group_id, topic.topic_id, each.partition),
                each.state_epoch,
                each.leader_epoch,
                each.start_offset,
                each.delivery_complete_count,
                tuple(map(_batch_in, each.state_batches)),
            )


def _write_weight(asked: Writing) -> int:
    return 1 + len(asked.batches)


def _write_result(outcome: Outcome) -> messages.WriteShareGroupStateResponsePartitionResult:
    return messages.WriteShareGroupStateResponsePartitionResult(
        partition=outcome.key.partition, error_code=outcome.error_code, error_message=outcome.error_message
    )


def _write_response(topics: dict[bytes, dict[int, Any]]) -> Message:
    results = [messages.WriteStateResult(topic_id=each, partitions=rows) for each, rows in _rows(topics)]
    return messages.WriteShareGroupStateResponse(results=results)


WRITE: Final[Question[Writing, Outcome]] = Question(
    "write share group state",
    Write,
    _own_key,
    _write_weight,
    _no_batches,
    _failed_outcome,
    _write_message,
    messages.WriteShareGroupStateResponse,
    _writings_in,
    _write_result,
    _write_response,
    _outcome_in,
)


# Deleting


def _delete_message(group_id: str, asked: Iterable[SharePartitionKey]) -> Message:
    rows = _by_topic(
        (key, messages.DeleteShareGroupStateRequestPartitionData(partition=key.partition)) for key in asked
    )
    topics = [messages.DeleteStateData(topic_id=topic_id, partitions=each) for topic_id, each in rows.items()]
    return messages.DeleteShareGroupStateRequest(group_id=group_id, topics=topics)


def _keys_in(request: messages.DeleteShareGroupStateRequest) -> Iterator[SharePartitionKey]:
    for topic in request.topics:
        for each in topic.partitions:
            yield SharePartitionKey(request.group_id, topic.topic_id, each.partition)


def _itself(key: SharePartitionKey) -> SharePartitionKey:
    return key


def _delete_result(outcome: Outcome) -> messages.DeleteShareGroupStateResponsePartitionResult:
    return messages.DeleteShareGroupStateResponsePartitionResult(
        partition=outcome.key.partition, error_code=outcome.error_code, error_message=outcome.error_message
    )


def _delete_response(topics: dict[bytes, dict[int, Any]]) -> Message:
    results = [messages.DeleteStateResult(topic_id=each, partitions=rows) for each, rows in _rows(topics)]
    return messages.DeleteShareGroupStateResponse(results=results)


DELETE: Final[Question[SharePartitionKey, Outcome]] = Question(
    "delete share group state",
    Delete,
    _itself,
    _one,
    _no_batches,
    _failed_outcome,
    _delete_message,
    messages.DeleteShareGroupStateResponse,
    _keys_in,
    _delete_result,
    _delete_response,
    _outcome_in,
)


# Reading summaries


def _summary_message(group_id: str, asked: Iterable[Reading]) -> Message:
    rows = _by_topic(
        (
            each.key,
            messages.ReadShareGroupStateSummaryRequestPartitionData(
                partition=each.key.partition, leader_epoch=each.leader_epoch
            ),
        )
        for each in asked
    )
    topics = [messages.ReadStateSummaryData(topic_id=topic_id, partitions=each) for topic_id, each in rows.items()]
    return messages.ReadShareGroupStateSummaryRequest(group_id=group_id, topics=topics)


def _summary_result(state: PartitionState) -> messages.ReadShareGroupStateSummaryResponsePartitionResult:
    row = messages.ReadShareGroupStateSummaryResponsePartitionResult(partition=state.key.partition)
    if state.error_code is not ErrorCode.NONE:
        row.error_code, row.error_message = state.error_code, state.error_message
        return row
    row.state_epoch, row.leader_epoch = state.state_epoch, state.leader_epoch
    row.start_offset, row.delivery_complete_count = state.start_offset, state.delivery_complete_count
    return row


def _summary_response(topics: dict[bytes, dict[int, Any]]) -> Message:
    results = [messages.ReadStateSummaryResult(topic_id=each, partitions=rows) for each, rows in _rows(topics)]
    return messages.ReadShareGroupStateSummaryResponse(results=results)


def _summary_in(
    key: SharePartitionKey, row: messages.ReadShareGroupStateSummaryResponsePartitionResult
) -> PartitionState:
    if row.error_code != ErrorCode.NONE:
        return _failed_state(key, code_of(row.error_code), row.error_message)
    return PartitionState(key, row.state_epoch, row.leader_epoch, row.start_offset, row.delivery_complete_count)


READ_SUMMARY: Final[Question[Reading, PartitionState]] = Question(
    "read share group state summary",
    ReadSummary,
    _own_key,
    _one,
    _no_batches,
    _failed_state,
    _summary_message,
    messages.ReadShareGroupStateSummaryResponse,
    _readings_in,
    _summary_result,
    _summary_response,
    _summary_in,
)


QUESTIONS: Final[Mapping[type[Message], Question[Any, Any]]] = {
    messages.InitializeShareGroupStateRequest: INITIALIZE,
    messages.ReadShareGroupStateRequest: READ,
    messages.WriteShareGroupStateRequest: WRITE,
    messages.DeleteShareGroupStateRequest: DELETE,
    messages.ReadShareGroupStateSummaryRequest: READ_SUMMARY,
}
