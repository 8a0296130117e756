"""FindCoordinator (key 10): which broker coordinates a group, or the transactions of a producer.

Served are versions 0 to 6: 1 brought key types (KIP-98), 4 several keys (KIP-699), 6 share partitions, for brokers
(KIP-932). The first request creates the coordinator's topic, and is answered when the coordinator is ready, so that a
client's first try succeeds.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, TypeAlias

import trio

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.coordinators.coordinator_driver import CoordinatorDriver
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.network.needs import names
from pykbroker.server.node.broker import Broker
from pykbroker.server.node.handlers import handles
from pykbroker.sharing.coordinator_key import parse_coordinator_key

from .authorization import is_allowed, is_allowed_on_cluster
from .broker_endpoint import broker_endpoint, note_question
from .coordinator_topics import ensure_topic

AnyCoordinator: TypeAlias = CoordinatorDriver[Any, Any, Any]

_COORDINATOR_KEYS_SINCE = 4
_SHARE_PARTITIONS_SINCE = 6
_READY_TIMEOUT_S = 5.0
_NOT_THERE: Final = -1
_STEPS_OF_KEY: Final = 6


class CoordinatorType(IntEnum):
    """The request's key names a group, a transactional id, or a share partition."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


_DENIALS: Final[dict[int, ErrorCode]] = {
    CoordinatorType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CoordinatorType.TRANSACTION: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    CoordinatorType.SHARE: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}


@handles(
    FindCoordinatorRequest,
    needs=names(
        (Operation.DESCRIBE, ResourceType.GROUP),
        (Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
        (Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    ),
)
async def find_coordinator(context: RequestContext[Broker], request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if context.header.api_version >= _COORDINATOR_KEYS_SINCE:
        return FindCoordinatorResponse(coordinators=await _find_all(context, request))
    one = await _find(context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message or ErrorCode.NONE.name,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _find_all(context: RequestContext[Broker], request: FindCoordinatorRequest) -> list[Coordinator]:
    """Keys of one partition have one coordinator: it is looked for, and waited for, once."""
    found: dict[int, Coordinator] = {}
    coordinators = []
    for key in request.coordinator_keys:
        coordinator = _coordinator_of_type(context, request.key_type)
        if not _may_find(context, request.key_type, key):
            coordinator = None
        index = None if coordinator is None else coordinator.partition_for(key)
        known = None if index is None else found.get(index)
        if known is None:
            known = await _find(context, request.key_type, key)
            if index is not None:
                found[index] = known
        coordinators.append(
            Coordinator(
                key=key,
                node_id=known.node_id,
                host=known.host,
                port=known.port,
                error_code=known.error_code,
                error_message=known.error_message,
            )
        )
        await context.turn.took(_STEPS_OF_KEY)
    return coordinators


def _coordinator_of_type(context: RequestContext[Broker], key_type: int) -> AnyCoordinator | None:
    match key_type:
        case CoordinatorType.GROUP:
            return context.node.groups
        case CoordinatorType.TRANSACTION:
            return context.node.transactions.coordinator
        case CoordinatorType.SHARE if context.header.api_version >= _SHARE_PARTITIONS_SINCE:
            return context.node.share_coordinator
    return None


def _may_find(context: RequestContext[Broker], key_type: int, key: str) -> bool:
    if key_type == CoordinatorType.SHARE:
        return is_allowed_on_cluster(context, Operation.CLUSTER_ACTION)
    kind = ResourceType.GROUP if key_type == CoordinatorType.GROUP else ResourceType.TRANSACTIONAL_ID
    return key_type not in _DENIALS or is_allowed(context, Operation.DESCRIBE, kind, key)


async def _find(context: RequestContext[Broker], key_type: int, key: str) -> Coordinator:
    coordinator = _coordinator_of_type(context, key_type)
    # Where several may be asked for, Kafka gives the error of one alone.
    words = None if context.header.api_version < _COORDINATOR_KEYS_SINCE else ""
    if coordinator is not None and not _may_find(context, key_type, key):
        return _failed(key, _DENIALS[key_type], words)
    if key_type == CoordinatorType.SHARE and (coordinator is None or parse_coordinator_key(key) is None):
        return _failed(key, ErrorCode.INVALID_REQUEST, words)
    if coordinator is not None:
        return await _coordinator(context, coordinator, key)
    return _failed(key, ErrorCode.INVALID_REQUEST, f"this broker has no coordinators of type {key_type}")


async def _coordinator(context: RequestContext[Broker], coordinator: AnyCoordinator, key: str) -> Coordinator:
    error_code = await ensure_topic(context.node, coordinator)
    index = coordinator.partition_for(key)
    if error_code is not ErrorCode.NONE or index is None:
        return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    image = context.node.image
    partition = image.partition(coordinator.topic, index)
    leader = None if partition is None else image.brokers.get(partition.leader)
    endpoint = None if leader is None or leader.fenced else broker_endpoint(context, leader)
    if leader is None or endpoint is None:
        return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if leader.id == context.node.node_id and not await _is_ready(context.node, coordinator, index):
        return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    note_question(context, leader.id, endpoint)
    return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port, error_message="")


async def _is_ready(node: Broker, coordinator: AnyCoordinator, index: int) -> bool:
    """Wait for the coordinator, which may hear a moment later than the image that it leads the partition."""
    with trio.move_on_after(_READY_TIMEOUT_S):
        await node.image_conditions.listeners_told(_READY_TIMEOUT_S)
        return await coordinator.wait_until_active(index)
    return False


def _failed(key: str, error_code: ErrorCode, message: str | None = None) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=_NOT_THERE,
        port=_NOT_THERE,
        error_code=error_code,
        error_message=error_code.description if message is None else message,
    )
