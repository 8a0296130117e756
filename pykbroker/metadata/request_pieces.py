"""Requests of many topics or resources, which the controller takes up piece by piece.

Each topic and each resource is decided for itself, and others may be between two pieces. What must be seen together,
the repetition of a name, is in one piece. How much one request may change at all is Kafka's `MAX_RECORDS_PER_USER_OP`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pykbroker.long_work import LongWork, portions
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from pykbroker.protocol.messages.quotas import AlterClientQuotasRequest
from pykbroker.protocol.messages.scram_credentials import AlterUserScramCredentialsRequest
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from pykbroker.protocol.schema import Message

from .controller_state import ControllerState
from .image import TOPIC_RESOURCE

MAX_RECORDS: Final = 10_000
MAX_PARTITIONS: Final = 10_000

_WEIGHT_OF_PIECE: Final = 1000
"""Each unit is some ten microseconds of the controller's time."""

TOO_MANY_PARTITIONS: Final = "Excessively large number of partitions per request."
_TOO_MANY_RECORDS: Final = "Unable to perform excessively large batch operation."


def too_many_records() -> ApiError:
    return ApiError(ErrorCode.POLICY_VIOLATION, _TOO_MANY_RECORDS)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of request. asked, answered: where the entries stand in the request and in its response."""

    asked: str
    answered: str
    key: Callable[[Any], Hashable]
    weight: Callable[[Any], int]


def _by_name(entry: Any) -> Hashable:
    name: str = entry.name
    return name


def _by_resource(entry: Any) -> Hashable:
    return entry.resource_type, entry.resource_name


_KINDS: Final[dict[type[Message], _Kind]] = {
    CreateTopicsRequest: _Kind(
        "topics", "topics", _by_name, lambda topic: 20 + max(topic.num_partitions, len(topic.assignments), 1)
    ),
    CreatePartitionsRequest: _Kind("topics", "results", _by_name, lambda topic: 20),
    IncrementalAlterConfigsRequest: _Kind(
        "resources", "responses", _by_resource, lambda resource: 10 + len(resource.configs)
    ),
    AlterConfigsRequest: _Kind("resources", "responses", _by_resource, lambda resource: 10 + len(resource.configs)),
}


def pieces_of(request: Message) -> LongWork[Sequence[Any]]:
    """The request alone, where it is not large."""
    if isinstance(request, DeleteTopicsRequest):
        return (yield from _deletions(request))
    kind = _KINDS.get(type(request))
    if kind is None:
        return [request]
    return (yield from _cut(request, kind))


def _deletions(request: DeleteTopicsRequest) -> LongWork[Sequence[DeleteTopicsRequest]]:
    """A name and an id may mean the same topic: where both occur, the request stays whole."""
    if request.topic_names:
        return (yield from _cut(request, _Kind("topic_names", "responses", lambda name: name, lambda name: 2)))
    if len({each.name is None for each in request.topics}) > 1:
        return [request]
    by_both = _Kind("topics", "responses", lambda each: (each.name, each.topic_id), lambda each: 2)
    return (yield from _cut(request, by_both))


def _cut(request: Any, kind: _Kind) -> LongWork[Sequence[Any]]:
    together: dict[Hashable, list[Any]] = {}
    weights: Counter[Hashable] = Counter()
    for each in getattr(request, kind.asked):
        key = kind.key(each)
        together.setdefault(key, []).append(each)
        weights[key] += kind.weight(each)
        yield 1
    if weights.total() <= _WEIGHT_OF_PIECE:
        return [request]
    pieces = []
    piece: list[Any] = []
    weight = 0
    for key, same in together.items():
        yield 1
        if piece and weight + kind.weight(same[0]) > _WEIGHT_OF_PIECE:
            pieces.append(_with(request, kind, piece))
            piece, weight = [], 0
        piece += same
        weight += weights[key]
    pieces.append(_with(request, kind, piece))
    return pieces


def _with(request: Any, kind: _Kind, entries: list[Any]) -> Any:
    piece = copy(request)
    setattr(piece, kind.asked, entries)
    return piece


def merged(request: Message, responses: Sequence[Any]) -> Any:
    """The response to all pieces of the request."""
    response, *others = responses
    if not others:
        return response
    answered = "responses" if isinstance(request, DeleteTopicsRequest) else _KINDS[type(request)].answered
    entries = getattr(response, answered)
    for other in others:
        entries += getattr(other, answered)
    return response


def policy_violation(state: ControllerState, request: Message) -> LongWork[ApiError | None]:
    """The error of a request that asks for more records or partitions at once than the controller takes; else None.

    The error is a value: every piece of the request gets it, and each of its rows.
    """
    match request:
        case CreateTopicsRequest():
            return (yield from _of_topics(state, request.topics))
        case CreatePartitionsRequest():
            added = yield from _sum(partial(_added, state), request.topics)
            return too_many_records() if max(added, len(request.topics)) > MAX_RECORDS else None
        case IncrementalAlterConfigsRequest() | AlterConfigsRequest():
            changes = yield from _sum(partial(_changes, state), request.resources)
            return too_many_records() if changes > MAX_RECORDS else None
        case AlterClientQuotasRequest():
            changes = yield from _sum(lambda entry: len(entry.ops), request.entries)
            return too_many_records() if changes > MAX_RECORDS else None
        case AlterUserScramCredentialsRequest():
            return too_many_records() if len(request.deletions) + len(request.upsertions) > MAX_RECORDS else None
    return None


def _sum(weight: Callable[[Any], int], entries: Iterable[Any]) -> LongWork[int]:
    total = 0
    for portion in portions(entries):
        total += sum(map(weight, portion))
        yield len(portion)
    return total


def _of_topics(state: ControllerState, topics: Sequence[CreatableTopic]) -> LongWork[ApiError | None]:
    by_name: dict[str, CreatableTopic] = {}
    for portion in portions(topics):
        by_name.update((topic.name, topic) for topic in portion)
        yield len(portion) // 4
    once = by_name.values()
    default = state.config.int("num.partitions")
    partitions = yield from _sum(partial(_partitions, default), once)
    if partitions > MAX_PARTITIONS:
        return ApiError(ErrorCode.POLICY_VIOLATION, TOO_MANY_PARTITIONS)
    if partitions + (yield from _sum(lambda topic: 1 + len(topic.configs), once)) > MAX_RECORDS:
        return too_many_records()
    return None


def _partitions(default: int, topic: CreatableTopic) -> int:
    wanted = len(topic.assignments) or (default if topic.num_partitions == -1 else topic.num_partitions)
    return max(wanted, 0)


def _changes(state: ControllerState, resource: Any) -> int:
    """Return the changes of a topic; none where it is not there."""
    is_there = resource.resource_type != TOPIC_RESOURCE or state.image.topic(resource.resource_name) is not None
    return len(resource.configs) if is_there else 0


def _added(state: ControllerState, wanted: CreatePartitionsTopic) -> int:
    """A topic that would get too many by itself gets none."""
    topic = state.image.topic(wanted.name)
    added = 0 if topic is None else wanted.count - len(topic.partitions)
    return added if 0 < added <= MAX_PARTITIONS else 0
