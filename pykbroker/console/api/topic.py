"""`GET /api/topics/{name}`: a topic and a page of its partitions, with leaders, in-sync replicas, offsets and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import trio

from pykbroker.client.metadata import Node
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition
from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.protocol.uuids import uuid_to_text

from .pages import Page, PageAsked, page_of
from .partition_offsets import Found, find_offsets
from .replica_sizes import Sizes, find_sizes
from .topic_rows import NO_LEADER, is_under_replicated, metadata_of


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition. offsets and size: None where nobody tells them; error: Kafka's name of the reason."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    offline: Sequence[int]
    first_offset: int | None
    end_offset: int | None
    size_bytes: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with one page of its partitions."""

    name: str
    topic_id: str
    is_internal: bool
    under_replicated: int
    offline: int
    partitions: Page[PartitionRow]


async def topic(asking: Asking, given: Arguments) -> Topic:
    """Raises UnknownTopic, BadInput, ClientError."""
    name, asked = given.text("name"), PageAsked.of(given)
    response, found = await metadata_of(asking.cluster, name)
    page = page_of(sorted(found.partitions, key=lambda each: each.partition_index), asked)
    by_leader = leaders(response, name, page.rows)
    first, end, sizes = Found({}, {}), Found({}, {}), Sizes()
    async with trio.open_nursery() as nursery:  # a broker that does not answer is waited for once
        nursery.start_soon(find_offsets, asking.cluster, by_leader, EARLIEST_TIMESTAMP, first)
        nursery.start_soon(find_offsets, asking.cluster, by_leader, LATEST_TIMESTAMP, end)
        nursery.start_soon(find_sizes, asking.cluster, by_leader, sizes)

    def row(of: MetadataResponsePartition) -> PartitionRow:
        at = TopicPartition(name, of.partition_index)
        no_leader = ErrorCode.LEADER_NOT_AVAILABLE.name if at not in first.errors and at not in first.offsets else None
        return PartitionRow(
            partition=of.partition_index,
            leader=None if of.leader_id == NO_LEADER else of.leader_id,
            leader_epoch=of.leader_epoch,
            replicas=of.replica_nodes,
            isr=of.isr_nodes,
            offline=of.offline_replicas,
            first_offset=first.offsets.get(at),
            end_offset=end.offsets.get(at),
            size_bytes=sizes.get(at),
            error=first.errors.get(at) or end.errors.get(at) or no_leader,
        )

    return Topic(
        name=name,
        topic_id=uuid_to_text(found.topic_id),
        is_internal=found.is_internal,
        under_replicated=sum(map(is_under_replicated, found.partitions)),
        offline=sum(each.leader_id == NO_LEADER for each in found.partitions),
        partitions=page.mapped(row),
    )


def leaders(
    response: MetadataResponse, name: str, partitions: Sequence[MetadataResponsePartition]
) -> Mapping[Node, list[TopicPartition]]:
    """Return the partitions that each broker leads; those without a leader are left out."""
    nodes = {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers}
    found: dict[Node, list[TopicPartition]] = {}
    for each in partitions:
        if each.leader_id in nodes:
            found.setdefault(nodes[each.leader_id], []).append(TopicPartition(name, each.partition_index))
    return found
