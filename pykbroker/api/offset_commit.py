"""OffsetCommit (key 8): store how far a group has read.

Served are versions 2 to 10: 5 dropped the retention time (KIP-211), 6 brought leader epochs (KIP-320), 7 static members
(KIP-345), 10 topic ids instead of names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pykbroker.protocol.schema import Message
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions

from .authorization import is_allowed
from .group_requests import begin, submit, take_out_unknown
from .pieces import in_pieces, steps_of, with_topics

_STEPS_OF_COMMIT = 8
_TOPIC_IDS_SINCE = 10
_MOST_BEGUN = 20
"""Offsets of a commit that has no task: a part of a turn."""
# To get a member from its enumeration takes Python 3.11 as long as a call.
_READ: Final = Operation.READ
_GROUP: Final = ResourceType.GROUP
_TOPIC: Final = ResourceType.TOPIC
_UNKNOWN: Final = ErrorCode.UNKNOWN_SERVER_ERROR


def begin_commit(
    context: RequestContext[Broker], request: OffsetCommitRequest, give: Callable[[Message], None]
) -> bool:
    """Begin a commit of a few offsets that are all for the coordinator, as nearly all commits are (`Begin`)."""
    image, partitions = context.node.image, 0
    by_id = context.header.api_version >= _TOPIC_IDS_SINCE
    group_id = request.group_id
    has_rights = context.node.authorizer is None  # then everybody may do everything
    if not request.topics or not (has_rights or is_allowed(context, _READ, _GROUP, group_id, is_logged=False)):
        return False
    for topic in request.topics:
        found = image.topic_by_id(topic.topic_id) if by_id else image.topic(topic.name)
        partitions += len(topic.partitions)
        if found is None or not topic.partitions or partitions > _MOST_BEGUN:
            return False
        existing = found.partitions
        for each in topic.partitions:
            if each.partition_index not in existing:
                return False
        if not (has_rights or is_allowed(context, _READ, _TOPIC, found.name, is_logged=False)):
            return False
        topic.name, topic.topic_id = found.name, found.topic_id

    def then(response: Any, error: Exception | None) -> None:
        if error is not None:
            from pykbroker.groups.offsets.offset_commits import refused_commit

            response = refused_commit(request, error.code if isinstance(error, ApiError) else _UNKNOWN)
        give(response)

    begin(context, group_id, request, then)
    return True


@handles(
    OffsetCommitRequest,
    needs=names((Operation.READ, ResourceType.GROUP), (Operation.READ, ResourceType.TOPIC)),
    begin=begin_commit,
)
async def offset_commit(context: RequestContext[Broker], request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Partitions that do not exist are answered here, the others by the coordinator, in the order of the request."""
    may_commit = is_allowed(context, Operation.READ, ResourceType.GROUP, request.group_id)
    commits = [await _Commit.of(context, topic, may_commit=may_commit) for topic in request.topics]
    for piece in in_pieces((each, each.known) for each in commits):
        topics = [
            OffsetCommitRequestTopic(name=each.topic.name, topic_id=each.topic.topic_id, partitions=list(partitions))
            for each, partitions in piece
        ]
        response = await _commit(context, with_topics(request, topics))
        for (each, _), answered in zip(piece, response.topics, strict=True):
            each.answer.partitions += answered.partitions
        await context.turn.took(steps_of(piece, _STEPS_OF_COMMIT))
    for each in commits:
        await each.refuse_unknown(context)
    return OffsetCommitResponse(topics=_rows(commits))


def _rows(commits: list[_Commit]) -> list[OffsetCommitResponseTopic]:
    """Return one row for each topic where some are refused; a topic that is refused has one even without partitions.

    Where none is, the coordinator's rows are those of the request (Kafka's `OffsetCommitResponse.Builder`).
    """
    if not any(each.is_refused or each.unknown for each in commits):
        return [each.answer for each in commits if each.answer.partitions]
    rows: dict[tuple[str, bytes], OffsetCommitResponseTopic] = {}
    for each in commits:
        key = each.answer.name, each.answer.topic_id
        if key in rows:
            rows[key].partitions += each.answer.partitions
        elif each.answer.partitions or each.is_refused:
            rows[key] = each.answer
    return list(rows.values())


@dataclass(slots=True)
class _Commit:
    """Answer the offsets of one topic. error_code: why the others are refused; is_refused: all of the topic is."""

    topic: OffsetCommitRequestTopic
    known: list[OffsetCommitRequestPartition]
    unknown: list[int]
    error_code: ErrorCode
    answer: OffsetCommitResponseTopic
    is_refused: bool

    @staticmethod
    async def of(context: RequestContext[Broker], topic: OffsetCommitRequestTopic, *, may_commit: bool) -> _Commit:
        """Add to the name the id, or to the id the name: both are stored.

        may_commit: whether the client may read as a member of the group.
        """
        image = context.node.image
        if context.header.api_version >= _TOPIC_IDS_SINCE:
            found, error_code = image.topic_by_id(topic.topic_id), ErrorCode.UNKNOWN_TOPIC_ID
        else:
            found, error_code = image.topic(topic.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer = OffsetCommitResponseTopic(name=topic.name)
        if found is not None:
            topic.name = answer.name = found.name
            topic.topic_id = found.topic_id
            error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer.topic_id = topic.topic_id
        if not may_commit:
            found, error_code = None, ErrorCode.GROUP_AUTHORIZATION_FAILED
        elif topic.name and not is_allowed(context, Operation.READ, ResourceType.TOPIC, topic.name):
            found, error_code = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        known, unknown = await take_out_unknown(context, topic.partitions, found)
        return _Commit(topic, known, unknown, error_code, answer, is_refused=found is None)

    async def refuse_unknown(self, context: RequestContext[Broker]) -> None:
        error_code = self.error_code
        for indexes in portions(self.unknown):
            refused = [OffsetCommitResponsePartition(partition_index=each, error_code=error_code) for each in indexes]
            self.answer.partitions += refused
            await context.turn.took(len(indexes))


async def _commit(context: RequestContext[Broker], request: OffsetCommitRequest) -> OffsetCommitResponse:
    try:
        response: OffsetCommitResponse = await submit(context, request.group_id, request)
    except ApiError as error:
        from pykbroker.groups.offsets.offset_commits import refused_commit

        return refused_commit(request, error.code)
    return response
