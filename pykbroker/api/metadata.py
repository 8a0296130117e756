"""Metadata (key 3): brokers, and the partitions of some or all topics, which may be created on the way.

Served are versions 0 to 13: in 0 an empty list of topics is all of them, since 1 it is none; 4 lets the client forbid
creation (KIP-204); 8 to 10 tell of the cluster's authorized operations (KIP-430); 12 takes topic ids (KIP-516).
A topic that is to be created is unknown in the answer, as in Kafka, and the client asks again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pykbroker.metadata.image import MetadataImage, TopicState
from pykbroker.metadata.partition_state import PartitionState
from pykbroker.metadata.topic_names import invalid_reason, is_internal
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pykbroker.protocol.schema import NO_UUID
from pykbroker.server.broker import Broker
from pykbroker.server.dispatch import RequestContext, RequestRefused, handles

from .authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from .offline_replicas import OfflineReplicas

_EMPTY_IS_NONE_SINCE: Final = 1
_LISTENER_NOT_FOUND_SINCE: Final = 6
_TOPIC_IDS_SINCE: Final = 12


@handles(MetadataRequest)
async def metadata(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    broker = context.broker
    if _wants_all(context, request):
        topics = [_described(context, topic) for topic in broker.image.topics.values()]
    else:
        topics = _named_or_created(context, request)
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    image = broker.image
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each.id, host=endpoint.host, port=endpoint.port, rack=each.rack)
            for each in image.live_brokers
            if (endpoint := each.endpoint(context.listener_name)) is not None
        ],
        cluster_id=broker.cluster_id,
        controller_id=controller_id(broker),
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def controller_id(broker: Broker) -> int:
    """To whom clients send admin requests: any live broker, since it passes them on to the controller (KIP-590)."""
    if broker.image.is_alive(broker.node_id):
        return broker.node_id
    return next((each.id for each in broker.image.live_brokers), -1)


def _wants_all(context: RequestContext, request: MetadataRequest) -> bool:
    return request.topics is None or (not request.topics and context.header.api_version < _EMPTY_IS_NONE_SINCE)


def _named_or_created(context: RequestContext, request: MetadataRequest) -> list[MetadataResponseTopic]:
    wanted = request.topics or []
    by_id = any(each.topic_id != NO_UUID for each in wanted)
    if context.header.api_version < _TOPIC_IDS_SINCE and (by_id or any(each.name is None for each in wanted)):
        raise RequestRefused("Metadata by topic id needs version 12")
    if by_id:
        return _described_by_id(context, wanted)
    names = list(dict.fromkeys(each.name for each in wanted if each.name is not None))
    if request.allow_auto_topic_creation and context.broker.config.bool("auto.create.topics.enable"):
        _create_missing(context.broker, names)
    return [_described_by_name(context, name) for name in names]


def _described_by_id(context: RequestContext, wanted: Iterable[MetadataRequestTopic]) -> list[MetadataResponseTopic]:
    """Where one topic is asked for by its id, the names beside it do not count."""
    described = []
    for topic_id in dict.fromkeys(each.topic_id for each in wanted if each.topic_id != NO_UUID):
        topic = context.broker.image.topic_by_id(topic_id)
        described.append(
            MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
            if topic is None
            else _described(context, topic)
        )
    return described


def _described_by_name(context: RequestContext, name: str) -> MetadataResponseTopic:
    topic = context.broker.image.topic(name)
    if topic is not None:
        return _described(context, topic)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if invalid_reason(name) is not None:
        unknown = ErrorCode.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(error_code=unknown, name=name, is_internal=is_internal(name))


def _create_missing(broker: Broker, names: Iterable[str]) -> None:
    """Internal topics are created by those who need them."""
    image = broker.image
    broker.auto_topic_creation.create(
        name for name in names if image.topic(name) is None and invalid_reason(name) is None and not is_internal(name)
    )


def _described(context: RequestContext, topic: TopicState) -> MetadataResponseTopic:
    image = context.broker.image
    offline = OfflineReplicas(image, context.listener_name)
    leaders = {each.leader for each in topic.partitions.values()}
    errors = {leader: leader_error(context, image, leader) for leader in leaders}
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(index, each, errors[each.leader], offline) for index, each in topic.partitions.items()],
    )


def _partition(
    index: int, partition: PartitionState, error_code: ErrorCode, offline: OfflineReplicas
) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=error_code,
        partition_index=index,
        leader_id=-1 if error_code else partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=offline.of(partition),
    )


def leader_error(context: RequestContext, image: MetadataImage, leader: int) -> ErrorCode:
    """Why a client of this listener cannot reach the leader."""
    if not image.is_alive(leader):
        return ErrorCode.LEADER_NOT_AVAILABLE
    if image.brokers[leader].endpoint(context.listener_name) is not None:
        return ErrorCode.NONE
    if context.header.api_version < _LISTENER_NOT_FOUND_SINCE:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.LISTENER_NOT_FOUND
