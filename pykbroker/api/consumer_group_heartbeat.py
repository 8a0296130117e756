"""ConsumerGroupHeartbeat (key 68): a member of a consumer group joins, stays, and leaves (KIP-848).

Served are versions 0 and 1: 1 brought regular expressions, and member ids that the client chooses (KIP-1082).
"""

from __future__ import annotations

from pykbroker.groups.common.requests import MOST_NAMES
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .authorization import denied
from .group_requests import check_group, has_consumer_groups, submit_heartbeat


@handles(
    ConsumerGroupHeartbeatRequest,
    needs=names((Operation.READ, ResourceType.GROUP), (Operation.DESCRIBE, ResourceType.TOPIC)),
)
async def consumer_group_heartbeat(
    context: RequestContext[Broker], request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    if not has_consumer_groups(context):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        await _check_rights(context, request)
    except ApiError as error:
        return _refused(error)
    groups = context.node.groups
    if request.subscribed_topic_regex:
        topics = await groups.topic_regexes.prepare(request.subscribed_topic_regex)
        # Looked up here, in turns, what the group's step is about to ask is answered from memory.
        await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, topics, is_logged=False)
        await context.turn.through(groups.metadata_hash.learn(topics))
    if request.subscribed_topic_names:
        await context.turn.through(groups.metadata_hash.learn(request.subscribed_topic_names[: MOST_NAMES + 1]))
    if groups.metadata_hash.has_forgotten_many:
        await context.turn.through(groups.metadata_hash.learn_again())
    try:
        response: ConsumerGroupHeartbeatResponse = await submit_heartbeat(context, request.group_id, request)
    except ApiError as error:
        return _refused(error)
    return response


def _refused(error: ApiError) -> ConsumerGroupHeartbeatResponse:
    from pykbroker.groups.consumer.heartbeats import refused_heartbeat

    return refused_heartbeat(error)


async def _check_rights(context: RequestContext[Broker], request: ConsumerGroupHeartbeatRequest) -> None:
    """Raises ApiError."""
    check_group(context, Operation.READ, request.group_id)
    names = (request.subscribed_topic_names or ())[: MOST_NAMES + 1]
    if await denied(context, Operation.DESCRIBE, ResourceType.TOPIC, names):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
