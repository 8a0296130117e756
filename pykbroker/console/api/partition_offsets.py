"""First and end offsets of partitions: what each leader says within a few seconds, and the error of those that do not.

Other than `pykbroker.client.offsets`, one partition without a leader, or one broker that is gone, does not keep the
others from the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError, code_of
from pykbroker.client.metadata import Node
from pykbroker.client.offsets import READ_UNCOMMITTED
from pykbroker.console.failures import name_of
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykbroker.protocol.topic_partition import TopicPartition

LONGEST_S: Final = 5.0
AT_ONCE: Final = 1000
"""Partitions in one request: neither side's event loop is held."""
_CONSUMER: Final = -1

Offsets = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Found:
    """The offsets of partitions, and Kafka's names of the errors where there are none."""

    offsets: Offsets
    errors: dict[TopicPartition, str]


async def find_offsets(
    cluster: Cluster,
    by_leader: Mapping[Node, Sequence[TopicPartition]],
    timestamp: int,
    found: Found,
    isolation_level: int = READ_UNCOMMITTED,
) -> None:
    """Put into `found` the first offset at or behind the timestamp, one of ListOffsets, of each partition."""
    async with trio.open_nursery() as nursery:
        for node, partitions in by_leader.items():
            nursery.start_soon(_ask, cluster, node, partitions, timestamp, found, isolation_level)


async def _ask(
    cluster: Cluster,
    node: Node,
    partitions: Sequence[TopicPartition],
    timestamp: int,
    found: Found,
    isolation_level: int,
) -> None:
    failed = ErrorCode.REQUEST_TIMED_OUT.name
    with trio.move_on_after(LONGEST_S):
        try:
            connection = await cluster.node_connection(node)
            for first in range(0, len(partitions), AT_ONCE):
                request = _request(partitions[first : first + AT_ONCE], timestamp, isolation_level)
                _take(await connection.request(request, ListOffsetsResponse), found)
        except ClientError as error:
            failed = name_of(error)
    for each in partitions:
        if each not in found.offsets:
            found.errors.setdefault(each, failed)


def _request(partitions: Sequence[TopicPartition], timestamp: int, isolation_level: int) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsTopic] = {}
    for at in partitions:
        topic = topics.setdefault(at.topic, ListOffsetsTopic(name=at.topic))
        topic.partitions.append(ListOffsetsPartition(partition_index=at.partition, timestamp=timestamp))
    return ListOffsetsRequest(replica_id=_CONSUMER, isolation_level=isolation_level, topics=list(topics.values()))


def _take(response: ListOffsetsResponse, found: Found) -> None:
    for topic in response.topics:
        for row in topic.partitions:
            at = TopicPartition(topic.name, row.partition_index)
            if row.error_code == ErrorCode.NONE:
                found.offsets[at] = row.offset
            else:
                found.errors[at] = code_of(row.error_code).name
