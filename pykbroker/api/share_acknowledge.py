"""ShareAcknowledge (key 79): a member of a share group says what became of records that it has acquired (KIP-932).

Served are versions 1 and 2; 2 brought renewals of locks (KIP-1222). The model is Kafka's
`KafkaApis.handleShareAcknowledgeRequest`.
"""

from __future__ import annotations

from typing import Final

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.share_groups import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeResponsePartitionData,
    ShareAcknowledgeTopicResponse,
)
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles

from .current_leader import CurrentLeaders
from .share_requests import LEADER_MOVED, Acknowledgements, session_key

_STEPS_OF_PARTITION: Final = 5


@handles(
    ShareAcknowledgeRequest,
    needs=names((Operation.READ, ResourceType.GROUP), (Operation.READ, ResourceType.TOPIC)),
)
async def share_acknowledge(
    context: RequestContext[Broker], request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse:
    from pykbroker.sharing.sessions import FINAL_EPOCH

    shares = context.node.share_partitions
    try:
        key = session_key(context, request.group_id, request.member_id)
        shares.sessions.for_acknowledgement(key, request.share_session_epoch)
    except ApiError as error:
        return ShareAcknowledgeResponse(error_code=error.code)
    acknowledgements = Acknowledgements()
    await acknowledgements.begin(context, key, request.topics, is_renewal=request.is_renew_ack)
    outcomes = await acknowledgements.outcomes()
    if request.share_session_epoch == FINAL_EPOCH:
        await shares.end_session(key, context.turn)
    response = ShareAcknowledgeResponse()
    response.acquisition_lock_timeout_ms = shares.limits(key.group_id).record_lock_duration_ms
    leaders = CurrentLeaders(context, LeaderIdAndEpoch, NodeEndpoint)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    for at, refused in outcomes.items():
        topic = topics.get(at.topic_id)
        if topic is None:
            topic = topics[at.topic_id] = ShareAcknowledgeTopicResponse(topic_id=at.topic_id)
            response.responses.append(topic)
        answer = ShareAcknowledgeResponsePartitionData(partition_index=at.partition, error_code=ErrorCode.NONE)
        if refused is not None:
            answer.error_code, answer.error_message = refused.code, refused.message
            if refused.code in LEADER_MOVED:
                answer.current_leader = leaders.of("", at.topic_id, at.partition)
        topic.partitions.append(answer)
        await context.turn.took(_STEPS_OF_PARTITION)
    response.node_endpoints = leaders.nodes
    return response
