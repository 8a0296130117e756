"""FindCoordinator (key 10): which broker coordinates a group.

Served are versions 0 to 6: 1 brought key types (KIP-98), 4 several keys (KIP-699), 6 share groups, which are not
offered. Transactional ids are not offered either. The first request creates `__consumer_offsets`, and is answered when
the coordinator is ready, so that a client's first try succeeds.
"""

from __future__ import annotations

from typing import Final

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from pykbroker.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from pykbroker.server.broker import Broker
from pykbroker.server.coordinator_driver import CONSUMER_OFFSETS
from pykbroker.server.dispatch import RequestContext, handles

_COORDINATOR_KEYS_SINCE = 4
_GROUP, _TRANSACTION = 0, 1
_READY_TIMEOUT_S = 5.0
_NOT_THERE: Final = -1
_CREATED_OR_THERE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


@handles(FindCoordinatorRequest)
async def find_coordinator(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if context.header.api_version >= _COORDINATOR_KEYS_SINCE:
        found = [await _find(context, request.key_type, key) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    one = await _find(context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message or ErrorCode.NONE.name,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _find(context: RequestContext, key_type: int, key: str) -> Coordinator:
    if key_type == _TRANSACTION:
        return _failed(key, ErrorCode.INVALID_REQUEST, "this broker does not offer transactions")
    if key_type != _GROUP:
        return _failed(key, ErrorCode.INVALID_REQUEST, f"this broker has no coordinators of type {key_type}")
    broker = context.broker
    error_code = await _ensure_offsets_topic(broker)
    index = broker.groups.partition_for(key)
    if error_code is not ErrorCode.NONE or index is None:
        return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return await _coordinator(context, key, index)


async def _ensure_offsets_topic(broker: Broker) -> ErrorCode:
    if broker.image.topic(CONSUMER_OFFSETS) is not None:
        return ErrorCode.NONE
    live = len(broker.image.live_brokers)
    if not live:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    request = CreateTopicsRequest(topics=[_offsets_topic(broker, live)])
    response: CreateTopicsResponse = await broker.controller.submit(request)
    created = all(topic.error_code in _CREATED_OR_THERE for topic in response.topics)
    return ErrorCode.NONE if created else ErrorCode.COORDINATOR_NOT_AVAILABLE


def _offsets_topic(broker: Broker, live_brokers: int) -> CreatableTopic:
    """As Kafka creates it, but with no more replicas than there are brokers: one node works out of the box."""
    config = broker.config
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.int("offsets.topic.segment.bytes")),
    }
    return CreatableTopic(
        name=CONSUMER_OFFSETS,
        num_partitions=config.int("offsets.topic.num.partitions"),
        replication_factor=min(config.int("offsets.topic.replication.factor"), live_brokers),
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )


async def _coordinator(context: RequestContext, key: str, index: int) -> Coordinator:
    image = context.broker.image
    partition = image.partition(CONSUMER_OFFSETS, index)
    leader = None if partition is None else image.brokers.get(partition.leader)
    endpoint = None if leader is None else leader.endpoint(context.listener_name)
    if leader is None or endpoint is None:
        return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if leader.id == context.broker.node_id and not await _is_ready(context.broker, index):
        return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port, error_message="")


async def _is_ready(broker: Broker, index: int) -> bool:
    with trio.move_on_after(_READY_TIMEOUT_S):
        return await broker.groups.wait_until_active(index)
    return False


def _failed(key: str, error_code: ErrorCode, message: str | None = None) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=_NOT_THERE,
        port=_NOT_THERE,
        error_code=error_code,
        error_message=message or error_code.description,
    )
