"""The rights to create, enlarge and delete topics, looked up before the controller is asked.

A broker looks them up as well as the controller to which it passes the rest on: where the controller is in its process,
nobody else would. Kafka's counterpart is `ControllerApis`. What is named twice is left to the controller, which refuses
it whoever asks. A topic is taken to exist where this node's image has it: one that is not known yet is not deleted by
somebody whose rights nobody can look up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, TypeVar

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from pykbroker.protocol.schema import NO_UUID
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import ClusterNode
from pykbroker.server.runtime.turns import portions

from .authorization import denied, is_allowed, is_allowed_on_cluster

_METADATA_LOG: Final = "__cluster_metadata"
_DENIAL: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_STEPS_OF_TOPIC: Final = 6

T = TypeVar("T")


async def take_out_uncreatable(
    context: RequestContext[ClusterNode], request: CreateTopicsRequest
) -> list[CreatableTopicResult]:
    """Take the topics out that the client may not create; return their rows of the response."""
    if is_allowed_on_cluster(context, Operation.CREATE, is_logged=False):
        return []
    once = await _named_once(context, (topic.name for topic in request.topics))
    once.discard(_METADATA_LOG)
    refused = await denied(context, Operation.CREATE, ResourceType.TOPIC, once)
    request.topics = [topic for topic in request.topics if topic.name not in refused]
    return [
        CreatableTopicResult(name=name, error_code=_DENIAL, error_message="Authorization failed.") for name in refused
    ]


async def hide_configs(context: RequestContext[ClusterNode], response: CreateTopicsResponse) -> None:
    """Tell nothing of the configurations of created topics that the client may not describe."""
    created = [topic.name for topic in response.topics if not topic.error_code and topic.name is not None]
    hidden = await denied(context, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, created, is_logged=False)
    for topic in response.topics if hidden else ():
        if topic.name in hidden:
            topic.topic_config_error_code = _DENIAL
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []


async def take_out_unalterable(
    context: RequestContext[ClusterNode], request: CreatePartitionsRequest
) -> list[CreatePartitionsTopicResult]:
    """Take the topics out that the client may not alter; return their rows of the response."""
    if context.node.authorizer is None:
        return []
    once = await _named_once(context, (topic.name for topic in request.topics))
    refused = await denied(context, Operation.ALTER, ResourceType.TOPIC, once)
    request.topics = [topic for topic in request.topics if topic.name not in refused]
    return [CreatePartitionsTopicResult(name=name, error_code=_DENIAL, error_message=None) for name in refused]


async def take_out_undeletable(
    context: RequestContext[ClusterNode], request: DeleteTopicsRequest
) -> list[DeletableTopicResult]:
    """Take the topics out that the client may not delete; return their rows of the response."""
    if not context.node.config.bool("delete.topic.enable"):
        return []
    if is_allowed_on_cluster(context, Operation.DELETE, is_logged=False):
        return []
    rows: list[DeletableTopicResult] = []
    names = await _named_once(context, (*request.topic_names, *(each.name or "" for each in request.topics)))
    kept_names: list[str] = []
    for name in request.topic_names:
        row = _undeletable_name(context, name) if name in names else None
        _sort_in(row, rows, kept_names, name)
        await context.turn.took(_STEPS_OF_TOPIC)
    kept_topics: list[DeleteTopicState] = []
    for topic in request.topics:
        _sort_in(_undeletable(context, topic, names), rows, kept_topics, topic)
        await context.turn.took(_STEPS_OF_TOPIC)
    request.topic_names, request.topics = kept_names, kept_topics
    return rows


def _sort_in(row: DeletableTopicResult | None, rows: list[DeletableTopicResult], kept: list[T], entry: T) -> None:
    if row is None:
        kept.append(entry)
    else:
        rows.append(row)


def _undeletable(
    context: RequestContext[ClusterNode], asked: DeleteTopicState, names: set[str]
) -> DeletableTopicResult | None:
    if asked.name is not None:
        is_plain = asked.name in names and asked.topic_id == NO_UUID
        return _undeletable_name(context, asked.name) if is_plain else None
    topic = context.node.image.topic_by_id(asked.topic_id)
    if topic is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
        return None if asked.topic_id == NO_UUID else _row(None, asked.topic_id, unknown)
    if is_allowed(context, Operation.DELETE, ResourceType.TOPIC, topic.name):
        return None
    may_know = is_allowed(context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
    return _row(topic.name if may_know else None, asked.topic_id, _DENIAL)


def _undeletable_name(context: RequestContext[ClusterNode], name: str) -> DeletableTopicResult | None:
    if not is_allowed(context, Operation.DESCRIBE, ResourceType.TOPIC, name):
        return _row(name, NO_UUID, _DENIAL)
    if is_allowed(context, Operation.DELETE, ResourceType.TOPIC, name):
        return None
    is_there = context.node.image.topic(name) is not None
    return _row(name, NO_UUID, _DENIAL if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _row(name: str | None, topic_id: bytes, error: ErrorCode) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=error, error_message=error.description)


async def _named_once(context: RequestContext[ClusterNode], names: Iterable[str]) -> set[str]:
    times: Counter[str] = Counter()
    for portion in portions(names):
        times.update(portion)
        await context.turn.took(len(portion) // 4)
    return {name for name, count in times.items() if count == 1}
