"""OffsetDelete (key 47): forget committed offsets of topics that the group no longer reads (KIP-496)."""

from __future__ import annotations

from collections.abc import Sequence

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.server.runtime.turns import portions

from .authorization import is_allowed
from .group_requests import submit, take_out_unknown
from .pieces import in_pieces, steps_of, with_topics

_STEPS_OF_DELETION = 8


@handles(OffsetDeleteRequest, needs=names((Operation.DELETE, ResourceType.GROUP), (Operation.READ, ResourceType.TOPIC)))
async def offset_delete(context: RequestContext[Broker], request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """The coordinator is asked even where nothing is left to delete: whether there is such a group is its answer."""
    if not is_allowed(context, Operation.DELETE, ResourceType.GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    answers: dict[str, list[OffsetDeleteResponsePartition]] = {}
    wanted = []
    for topic in request.topics:
        found, error_code = context.node.image.topic(topic.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not is_allowed(context, Operation.READ, ResourceType.TOPIC, topic.name):
            found, error_code = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        known, unknown = await take_out_unknown(context, topic.partitions, found)
        answer = answers.setdefault(topic.name, [])
        for portion in portions(unknown):
            answer += [_refused_partition(index, error_code) for index in portion]
            await context.turn.took(len(portion))
        wanted.append((topic.name, known))
    for piece in in_pieces(wanted) if any(known for _, known in wanted) else [[]]:
        response = await _delete(context, request, piece)
        if response.error_code != ErrorCode.NONE:
            return response
        for deleted in response.topics:
            answers[deleted.name] += deleted.partitions
        await context.turn.took(steps_of(piece, _STEPS_OF_DELETION))
    topics = [OffsetDeleteResponseTopic(name=name, partitions=answer) for name, answer in answers.items() if answer]
    return OffsetDeleteResponse(topics=topics)


def _refused_partition(index: int, error_code: ErrorCode) -> OffsetDeleteResponsePartition:
    return OffsetDeleteResponsePartition(partition_index=index, error_code=error_code)


async def _delete(
    context: RequestContext[Broker],
    request: OffsetDeleteRequest,
    piece: Sequence[tuple[str, Sequence[OffsetDeleteRequestPartition]]],
) -> OffsetDeleteResponse:
    topics = [OffsetDeleteRequestTopic(name=name, partitions=list(partitions)) for name, partitions in piece]
    try:
        response: OffsetDeleteResponse = await submit(context, request.group_id, with_topics(request, topics))
    except ApiError as error:
        return OffsetDeleteResponse(error_code=error.code)
    return response
