"""The handlers of share groups' requests have in common: whether there are any, and offsets as others see them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice
from typing import Final

import trio

from pykbroker.client.errors import ClientError, code_of
from pykbroker.metadata.features import SHARE_VERSION, feature_level
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykbroker.replication.reads import FetchIsolation, OffsetSpec
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker

MOST_OFFSETS: Final = 20_000
"""How many partitions and topics a request about a share group's offsets may name."""
_TIMES_ASKED: Final = 5
_BACKOFF_MS: Final = 100
_OFFSETS_AT_ONCE: Final = 5_000
_CONSUMER: Final = -1
_STEPS_OF_PARTITION: Final = 5


def has_share_groups(context: RequestContext[Broker]) -> bool:
    """Return whether the cluster has agreed on share groups (KIP-932)."""
    return feature_level(context.node.image, SHARE_VERSION) > 0


async def latest_offsets(
    context: RequestContext[Broker], partitions: Collection[tuple[str, int]]
) -> dict[tuple[str, int], int | ErrorCode]:
    """Return the high watermark of each partition, by topic and index, or why it cannot be told.

    Leaders elsewhere are asked. One that does not answer is asked again, or whoever leads then. Kafka's counterpart is
    `NetworkPartitionMetadataClient`.
    """
    broker = context.node
    found: dict[tuple[str, int], int | ErrorCode] = {}
    elsewhere: dict[int, list[tuple[str, int]]] = {}
    for topic, index in partitions:
        state = broker.image.partition(topic, index)
        if state is None or state.leader < 0:
            found[topic, index] = ErrorCode.LEADER_NOT_AVAILABLE
        elif state.leader == broker.node_id:
            found[topic, index] = _offset_here(broker, topic, index)
        else:
            elsewhere.setdefault(state.leader, []).append((topic, index))
        await context.turn.took(_STEPS_OF_PARTITION)

    async def ask(leader: int, wanted: list[tuple[str, int]]) -> None:
        rest = iter(wanted)
        while portion := list(islice(rest, _OFFSETS_AT_ONCE)):
            found.update(await _offsets_of(broker, leader, portion))

    async with trio.open_nursery() as nursery:
        for leader, wanted in elsewhere.items():
            nursery.start_soon(ask, leader, wanted)
    return found


def _offset_here(broker: Broker, topic: str, index: int) -> int | ErrorCode:
    partition = broker.partitions.get_partition(topic, index)
    if isinstance(partition, ErrorCode):
        return partition
    listed = partition.known_offset(OffsetSpec.LATEST, FetchIsolation.HIGH_WATERMARK)
    assert listed is not None, "the latest offset is known without a look at records"
    return listed.error_code or listed.offset


async def _offsets_of(
    broker: Broker, leader: int, partitions: list[tuple[str, int]]
) -> Mapping[tuple[str, int], int | ErrorCode]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    request = ListOffsetsRequest(
        replica_id=_CONSUMER,
        topics=[
            ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsPartition(partition_index=index, timestamp=OffsetSpec.LATEST) for index in indexes
                ],
            )
            for name, indexes in topics.items()
        ],
    )
    for attempt in range(_TIMES_ASKED):
        try:
            response = await broker.transactions.inter_broker.request(
                leader, request, ListOffsetsResponse, purpose="share group lags"
            )
        except ClientError:
            if attempt + 1 < _TIMES_ASKED:
                await trio.sleep(_BACKOFF_MS * 2**attempt / 1000)
            continue
        answered: dict[tuple[str, int], int | ErrorCode] = {
            (topic.name, each.partition_index): code_of(each.error_code) if each.error_code else each.offset
            for topic in response.topics
            for each in topic.partitions
        }
        return {at: answered.get(at, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for at in partitions}
    return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
