"""What the handlers of group requests share: the way to the coordinator, and what does not come there."""

from __future__ import annotations

from typing import Any, TypeVar

from pykbroker.config.consumer_groups import REBALANCE_PROTOCOLS
from pykbroker.groups.context import GroupRequestContext
from pykbroker.groups.shard import GroupRequest
from pykbroker.metadata.features import GROUP_VERSION, feature_level
from pykbroker.metadata.image import TopicState
from pykbroker.protocol.messages.group_offsets import OffsetCommitRequestPartition
from pykbroker.protocol.messages.transactions import TxnOffsetCommitRequestPartition
from pykbroker.server.dispatch import RequestContext

_PartitionT = TypeVar("_PartitionT", OffsetCommitRequestPartition, TxnOffsetCommitRequestPartition)


def take_out_unknown(partitions: list[_PartitionT], known: TopicState | None) -> list[int]:
    """Leaves the partitions that exist to be committed, and gives the others' indexes."""
    existing = {} if known is None else known.partitions
    unknown = [each.partition_index for each in partitions if each.partition_index not in existing]
    partitions[:] = [each for each in partitions if each.partition_index in existing]
    return unknown


async def submit(context: RequestContext, group_id: str, request: GroupRequest) -> Any:
    """The group's coordinator's response. Raises CoordinatorRefused."""
    return await context.broker.groups.submit(group_id, request, group_context(context))


def has_consumer_groups(context: RequestContext) -> bool:
    """Whether the cluster has agreed on the consumer protocol (KIP-848)."""
    broker = context.broker
    return feature_level(broker.image, GROUP_VERSION) > 0 and "consumer" in broker.config.list(REBALANCE_PROTOCOLS)


def group_context(context: RequestContext) -> GroupRequestContext:
    return GroupRequestContext(
        api_version=context.header.api_version,
        client_id=context.header.client_id or "",
        # Java writes an address as host/address, and the host is not known here either.
        client_host=f"/{context.client_address}",
    )
