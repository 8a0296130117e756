"""StreamsGroupHeartbeat (key 88): a member of a streams group joins, stays, and leaves (KIP-1071).

Served are versions 0 and 1, with the rules of Kafka 4.3 and of 4.4; 1 asks for the description of the topology
(KIP-1331). In a cluster whose metadata.version is one of 4.4's, 0 has the rules of 4.4, too.

Internal topics that a group needs are created by the broker, as long as the client may create them. The member is told
at once that they are missing, and hears with a later heartbeat that they are there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from pykbroker.groups.common.requests import StreamsHeartbeatAnswer
from pykbroker.metadata.topic_names import invalid_reason, is_internal
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.streams_groups import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestTopology,
    StreamsGroupHeartbeatResponse,
)
from pykbroker.protocol.messages.topics import CreatableTopic
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .authorization import denied, is_allowed_on_cluster
from .group_requests import check_group, has_streams_groups, submit

_MISSING_INTERNAL_TOPICS: Final = 3
_MOST_ERRORS: Final = 3
_STEPS_OF_NAME: Final = 2


@handles(
    StreamsGroupHeartbeatRequest,
    needs=names(
        (Operation.READ, ResourceType.GROUP),
        (Operation.DESCRIBE, ResourceType.TOPIC),
        (Operation.CREATE, ResourceType.CLUSTER),
        (Operation.CREATE, ResourceType.TOPIC),
    ),
)
async def streams_group_heartbeat(
    context: RequestContext[Broker], request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse:
    if not has_streams_groups(context):
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        check_group(context, Operation.READ, request.group_id)
        if request.topology is not None:
            await _check_topology(context, request.topology)
        answer: StreamsHeartbeatAnswer = await submit(context, request.group_id, request)
    except ApiError as error:
        return StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
    if answer.missing:
        await _create(context, request.group_id, answer.response, answer.missing)
    return answer.response


async def _check_topology(context: RequestContext[Broker], topology: StreamsGroupHeartbeatRequestTopology) -> None:
    """Raises ApiError for topics that no topology may have, or that the client may not describe."""
    from pykbroker.groups.streams.topology import named_topics, too_large

    reason = too_large(topology)
    if reason is not None:
        raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, reason)
    topics = dict.fromkeys(named_topics(topology))
    internal = [name for name in topics if is_internal(name)]
    if internal:
        words = f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, words)
    invalid = []
    for name in topics:
        if invalid_reason(name) is not None:
            invalid.append(name)
        await context.turn.took(_STEPS_OF_NAME)
    if invalid:
        words = f"Topic names {','.join(invalid)} are not valid topic names."
        raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, words)
    if await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, topics):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    groups = context.node.groups
    await context.turn.through(groups.metadata_hash.learn(topics))
    if groups.metadata_hash.has_forgotten_many:
        await context.turn.through(groups.metadata_hash.learn_again())


async def _create(
    context: RequestContext[Broker],
    group_id: str,
    response: StreamsGroupHeartbeatResponse,
    missing: Collection[CreatableTopic],
) -> None:
    """Have the missing topics created, and say why some cannot be."""
    unauthorized = await _uncreatable(context, (topic.name for topic in missing))
    if unauthorized:
        _tell(response, f"Unauthorized to CREATE on topics {', '.join(unauthorized)}.")
        return
    creation = context.node.auto_topic_creation
    interval_ms = context.node.groups.streams_config(group_id).heartbeat_interval_ms
    creation.create_internal(missing, 2 * interval_ms, client=context)
    errors = creation.errors_of(topic.name for topic in missing)
    if errors:
        told = ", ".join(f"{name} ({error})" for name, error in errors[:_MOST_ERRORS])
        more = f" and {len(errors) - _MOST_ERRORS} more" if len(errors) > _MOST_ERRORS else ""
        _tell(response, f"Creation failed: {told}{more}.")


async def _uncreatable(context: RequestContext[Broker], topics: Iterable[str]) -> Collection[str]:
    """Return the topics that the client may not create."""
    if is_allowed_on_cluster(context, Operation.CREATE, is_logged=False):
        return ()
    return await denied(context, Operation.CREATE, ResourceType.TOPIC, topics)


def _tell(response: StreamsGroupHeartbeatResponse, words: str) -> None:
    """Add the words to the status that says that internal topics are missing."""
    statuses = response.status = response.status or []
    for status in statuses:
        if status.status_code == _MISSING_INTERNAL_TOPICS:
            status.status_detail = f"{status.status_detail}; {words}"
            return
    statuses.append(Status(status_code=_MISSING_INTERNAL_TOPICS, status_detail=words))
