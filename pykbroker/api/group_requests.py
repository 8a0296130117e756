"""The handlers of group requests share the way to the coordinator, and the answers that need none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pykbroker.config.consumer_groups import REBALANCE_PROTOCOLS
from pykbroker.metadata.features import GROUP_VERSION, STREAMS_VERSION, feature_level
from pykbroker.metadata.image import TopicState
from pykbroker.metadata.partition_state import PartitionState
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.group_offsets import OffsetCommitRequestPartition, OffsetDeleteRequestPartition
from pykbroker.protocol.messages.transactions import TxnOffsetCommitRequestPartition
from pykbroker.security.acls.operations import Operation
from pykbroker.security.acls.resources import ResourceType
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker
from pykbroker.server.runtime.turns import portions
from pykbroker.state_machine import CoordinatorContext

from .authorization import is_allowed

if TYPE_CHECKING:
    from pykbroker.groups.shard import GroupRequest

_PartitionT = TypeVar(
    "_PartitionT", OffsetCommitRequestPartition, OffsetDeleteRequestPartition, TxnOffsetCommitRequestPartition
)


async def take_out_unknown(
    context: RequestContext[Broker], partitions: Sequence[_PartitionT], topic: TopicState | None
) -> tuple[list[_PartitionT], list[int]]:
    """The partitions that exist, and the indexes of the others."""
    existing: Mapping[int, PartitionState] = {} if topic is None else topic.partitions
    known: list[_PartitionT] = []
    unknown: list[int] = []
    for portion in portions(partitions):
        known += [each for each in portion if each.partition_index in existing]
        unknown += [each.partition_index for each in portion if each.partition_index not in existing]
        await context.turn.took(1 + len(portion) // 4)
    return known, unknown


def check_group(context: RequestContext[Broker], operation: Operation, group_id: str) -> None:
    """Raises ApiError where the client may not do that with the group."""
    if not is_allowed(context, operation, ResourceType.GROUP, group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)


async def submit(context: RequestContext[Broker], group_id: str, request: GroupRequest) -> Any:
    """The group's coordinator's response. Raises ApiError."""
    return await context.node.groups.submit(group_id, request, group_context(context))


async def submit_heartbeat(context: RequestContext[Broker], group_id: str, request: GroupRequest) -> Any:
    """The response to a heartbeat of a new protocol; what it comes to for a large member is computed in a thread.
    Raises ApiError."""
    groups = context.node.groups
    prepared = await groups.prepare(group_id, request, context.header.api_version)
    coordinator_context = group_context(context)
    if prepared is not None:
        coordinator_context = replace(coordinator_context, prepared=prepared)
    return await groups.submit(group_id, request, coordinator_context)


def begin(
    context: RequestContext[Broker],
    group_id: str,
    request: GroupRequest,
    then: Callable[[Any, Exception | None], None],
) -> None:
    """Have `then` called with the response of the group's coordinator, or with the ApiError, at once or later."""
    context.node.groups.begin(group_id, request, group_context(context), then)


def has_consumer_groups(context: RequestContext[Broker]) -> bool:
    """Return whether the cluster has agreed on the consumer protocol (KIP-848)."""
    broker = context.node
    return feature_level(broker.image, GROUP_VERSION) > 0 and "consumer" in broker.config.list(REBALANCE_PROTOCOLS)


def has_streams_groups(context: RequestContext[Broker]) -> bool:
    """Return whether the cluster has agreed on the protocol of streams groups (KIP-1071)."""
    broker = context.node
    return feature_level(broker.image, STREAMS_VERSION) > 0 and "streams" in broker.config.list(REBALANCE_PROTOCOLS)


def _may_describe(context: RequestContext[Broker], topic: str) -> bool:
    return is_allowed(context, Operation.DESCRIBE, ResourceType.TOPIC, topic, is_logged=False)


def group_context(context: RequestContext[Broker]) -> CoordinatorContext:
    return CoordinatorContext(
        api_version=context.header.api_version,
        client_id=context.header.client_id or "",
        # Java writes an address as host/address, and the host is not known here either.
        client_host=f"/{context.client_address}",
        principal=context.principal,
        may_describe=None if context.node.authorizer is None else partial(_may_describe, context),
    )
