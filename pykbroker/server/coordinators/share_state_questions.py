"""The five questions to share coordinators, from the protocol's messages and back: whoever asks and whoever answers
has them from here (KIP-932).

A message has share partitions of one group, by topic: all five requests have one shape, and all five responses, in
structs of their own. Entries are made one after the other, so that a caller can have turns in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from pykbroker.client.errors import code_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import share_state as messages
from pykbroker.protocol.schema import Message, Struct
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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Structs:
    """The structs of a question: of the request and the response, of a topic in each, and of a partition in each."""

    request: Callable[..., Message]
    topic: Callable[..., Struct]
    partition: Callable[..., Struct]
    response: type[Any]
    topic_result: Callable[..., Struct]
    partition_result: Callable[..., Struct]


def _one(asked: object) -> int:
    return 1


def _no_batches(answer: object) -> int:
    return 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Question(Generic[AskedT, AnswerT]):
    """A question about share partitions.

    verb: in messages of errors. request: to the shard of a partition. key: of what is asked. weight: how many entries
    it has. batches_of: how many an answer has. failed: the answer that has nothing but an error. passes_empty_topics:
    topics without partitions are passed over; else a request that has one is answered with nothing.

    fields: what is asked, as fields of a partition in the request; asked: the same read back. result_fields: an answer,
    as fields of a partition in the response; answer_in: the same read back.
    """

    verb: str
    request: Callable[[tuple[AskedT, ...]], ShareStateRequest]
    structs: Structs
    key: Callable[[AskedT], SharePartitionKey] = attrgetter("key")
    weight: Callable[[AskedT], int] = _one
    batches_of: Callable[[AnswerT], int] = _no_batches
    failed: Callable[[SharePartitionKey, ErrorCode, str | None], AnswerT]
    fields: Callable[[AskedT], Mapping[str, Any]]
    asked: Callable[[SharePartitionKey, Any], AskedT]
    result_fields: Callable[[AnswerT], Mapping[str, Any]]
    answer_in: Callable[[SharePartitionKey, Any], AnswerT]
    passes_empty_topics: bool = False

    @property
    def response_type(self) -> type[Message]:
        return self.structs.response

    def message(self, group_id: str, asked: Iterable[AskedT]) -> Message:
        """Make the request to another broker, about one group."""
        structs = self.structs
        topics: dict[bytes, list[Struct]] = {}
        for each in asked:
            key = self.key(each)
            row = structs.partition(partition=key.partition, **self.fields(each))
            topics.setdefault(key.topic_id, []).append(row)
        named = [structs.topic(topic_id=topic_id, partitions=rows) for topic_id, rows in topics.items()]
        return structs.request(group_id=group_id, topics=named)

    def asked_in(self, request: Any) -> Iterator[AskedT]:
        """The questions of a request, one for each partition that it names."""
        for topic in request.topics:
            for each in topic.partitions:
                yield self.asked(SharePartitionKey(request.group_id, topic.topic_id, each.partition), each)

    def result(self, answer: AnswerT) -> Struct:
        """The answer as a partition of a response: its error, or what it says."""
        row = self.structs.partition_result
        if answer.error_code is not ErrorCode.NONE:
            code, message = answer.error_code, answer.error_message
            return row(partition=answer.key.partition, error_code=code, error_message=message)
        return row(partition=answer.key.partition, **self.result_fields(answer))

    def response(self, topics: dict[bytes, dict[int, Any]]) -> Message:
        """Make the response of such partitions, by topic id and number."""
        structs = self.structs
        results = [structs.topic_result(topic_id=each, partitions=list(rows.values())) for each, rows in topics.items()]
        response: Message = structs.response(results=results)
        return response


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


def _failed_outcome(key: SharePartitionKey, error_code: ErrorCode, message: str | None) -> Outcome:
    return Outcome(key, error_code, message)


def _failed_state(key: SharePartitionKey, error_code: ErrorCode, message: str | None) -> PartitionState:
    return PartitionState(key, error_code=error_code, error_message=message)


def _outcome_in(key: SharePartitionKey, row: Any) -> Outcome:
    return Outcome(key, code_of(row.error_code), row.error_message)


def _outcome_fields(outcome: Outcome) -> Mapping[str, Any]:
    return {"error_message": outcome.error_message}


def _written(batch: StateBatch) -> messages.StateBatch:
    first, last, state, count = batch
    return messages.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)


def _batch_in(batch: messages.StateBatch) -> StateBatch:
    return StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)


INITIALIZE: Final[Question[Initialization, Outcome]] = Question(
    verb="initialize share group state",
    request=Initialize,
    structs=Structs(
        request=messages.InitializeShareGroupStateRequest,
        topic=messages.InitializeStateData,
        partition=messages.InitializeShareGroupStateRequestPartitionData,
        response=messages.InitializeShareGroupStateResponse,
        topic_result=messages.InitializeStateResult,
        partition_result=messages.InitializeShareGroupStateResponsePartitionResult,
    ),
    failed=_failed_outcome,
    fields=lambda asked: {"state_epoch": asked.state_epoch, "start_offset": asked.start_offset},
    asked=lambda key, row: Initialization(key, row.state_epoch, row.start_offset),
    result_fields=_outcome_fields,
    answer_in=_outcome_in,
    passes_empty_topics=True,
)


# Reading


def _reading_fields(asked: Reading) -> Mapping[str, Any]:
    return {"leader_epoch": asked.leader_epoch}


def _reading(key: SharePartitionKey, row: Any) -> Reading:
    return Reading(key, row.leader_epoch)


def _state_fields(state: PartitionState) -> Mapping[str, Any]:
    return {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": list(map(_written, state.batches)),
    }


def _state_in(key: SharePartitionKey, row: messages.ReadShareGroupStateResponsePartitionResult) -> PartitionState:
    if row.error_code != ErrorCode.NONE:
        return _failed_state(key, code_of(row.error_code), row.error_message)
    batches = tuple(map(_batch_in, row.state_batches))
    return PartitionState(key, state_epoch=row.state_epoch, start_offset=row.start_offset, batches=batches)


READ: Final[Question[Reading, PartitionState]] = Question(
    verb="read share group state",
    request=Read,
    structs=Structs(
        request=messages.ReadShareGroupStateRequest,
        topic=messages.ReadStateData,
        partition=messages.ReadShareGroupStateRequestPartitionData,
        response=messages.ReadShareGroupStateResponse,
        topic_result=messages.ReadStateResult,
        partition_result=messages.ReadShareGroupStateResponsePartitionResult,
    ),
    batches_of=lambda state: len(state.batches),
    failed=_failed_state,
    fields=_reading_fields,
    asked=_reading,
    result_fields=_state_fields,
    answer_in=_state_in,
)


# Writing


def _writing_fields(asked: Writing) -> Mapping[str, Any]:
    return {
        "state_epoch": asked.state_epoch,
        "leader_epoch": asked.leader_epoch,
        "start_offset": asked.start_offset,
        "delivery_complete_count": asked.delivery_complete_count,
        "state_batches": list(map(_written, asked.batches)),
    }


def _writing(key: SharePartitionKey, row: messages.WriteShareGroupStateRequestPartitionData) -> Writing:
    batches = tuple(map(_batch_in, row.state_batches))
    return Writing(key, row.state_epoch, row.leader_epoch, row.start_offset, row.delivery_complete_count, batches)


WRITE: Final[Question[Writing, Outcome]] = Question(
    verb="write share group state",
    request=Write,
    structs=Structs(
        request=messages.WriteShareGroupStateRequest,
        topic=messages.WriteStateData,
        partition=messages.WriteShareGroupStateRequestPartitionData,
        response=messages.WriteShareGroupStateResponse,
        topic_result=messages.WriteStateResult,
        partition_result=messages.WriteShareGroupStateResponsePartitionResult,
    ),
    weight=lambda asked: 1 + len(asked.batches),
    failed=_failed_outcome,
    fields=_writing_fields,
    asked=_writing,
    result_fields=_outcome_fields,
    answer_in=_outcome_in,
)


DELETE: Final[Question[SharePartitionKey, Outcome]] = Question(
    verb="delete share group state",
    request=Delete,
    structs=Structs(
        request=messages.DeleteShareGroupStateRequest,
        topic=messages.DeleteStateData,
        partition=messages.DeleteShareGroupStateRequestPartitionData,
        response=messages.DeleteShareGroupStateResponse,
        topic_result=messages.DeleteStateResult,
        partition_result=messages.DeleteShareGroupStateResponsePartitionResult,
    ),
    key=lambda key: key,
    failed=_failed_outcome,
    fields=lambda key: {},
    asked=lambda key, row: key,
    result_fields=_outcome_fields,
    answer_in=_outcome_in,
)


# Reading summaries


def _summary_fields(state: PartitionState) -> Mapping[str, Any]:
    return {
        "state_epoch": state.state_epoch,
        "leader_epoch": state.leader_epoch,
        "start_offset": state.start_offset,
        "delivery_complete_count": state.delivery_complete_count,
    }


def _summary_in(
    key: SharePartitionKey, row: messages.ReadShareGroupStateSummaryResponsePartitionResult
) -> PartitionState:
    if row.error_code != ErrorCode.NONE:
        return _failed_state(key, code_of(row.error_code), row.error_message)
    return PartitionState(key, row.state_epoch, row.leader_epoch, row.start_offset, row.delivery_complete_count)


READ_SUMMARY: Final[Question[Reading, PartitionState]] = Question(
    verb="read share group state summary",
    request=ReadSummary,
    structs=Structs(
        request=messages.ReadShareGroupStateSummaryRequest,
        topic=messages.ReadStateSummaryData,
        partition=messages.ReadShareGroupStateSummaryRequestPartitionData,
        response=messages.ReadShareGroupStateSummaryResponse,
        topic_result=messages.ReadStateSummaryResult,
        partition_result=messages.ReadShareGroupStateSummaryResponsePartitionResult,
    ),
    failed=_failed_state,
    fields=_reading_fields,
    asked=_reading,
    result_fields=_summary_fields,
    answer_in=_summary_in,
)


QUESTIONS: Final[Mapping[type[Message], Question[Any, Any]]] = {
    messages.InitializeShareGroupStateRequest: INITIALIZE,
    messages.ReadShareGroupStateRequest: READ,
    messages.WriteShareGroupStateRequest: WRITE,
    messages.DeleteShareGroupStateRequest: DELETE,
    messages.ReadShareGroupStateSummaryRequest: READ_SUMMARY,
}
