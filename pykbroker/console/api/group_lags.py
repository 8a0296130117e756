"""Committed offsets of groups, and how far the logs are ahead of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from pykbroker.client.cluster import Cluster
from pykbroker.client.connection import Connection
from pykbroker.client.group_offsets import NAMES_TOPICS_UNTIL
from pykbroker.client.metadata import Node
from pykbroker.client.offsets import LATEST_TIMESTAMP
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from pykbroker.protocol.messages.share_groups import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .partition_offsets import Found, find_offsets

AT_ONCE: Final = 20
"""Groups in one request: a group may have offsets of many partitions."""
MOST_PARTITIONS: Final = 50_000
"""The lag of groups with more partitions than these, together, is not reckoned."""

Committed: TypeAlias = dict[TopicPartition, int]


async def committed_offsets(connection: Connection, group_ids: Sequence[str], most: int) -> dict[str, Committed]:
    """Return the offsets of the groups that this coordinator tells of, until there are `most`. Raises ClientError."""
    found: dict[str, Committed] = {}
    count = 0
    for first in range(0, len(group_ids), AT_ONCE):
        asked = [OffsetFetchRequestGroup(group_id=each, topics=None) for each in group_ids[first : first + AT_ONCE]]
        response = await connection.request(
            OffsetFetchRequest(groups=asked),
            OffsetFetchResponse,
            version=connection.version_of(OffsetFetchRequest, NAMES_TOPICS_UNTIL),
        )
        for group in response.groups:
            if group.error_code == ErrorCode.NONE:
                found[group.group_id] = {
                    TopicPartition(topic.name, row.partition_index): row.committed_offset
                    for topic in group.topics
                    for row in topic.partitions
                    if row.committed_offset >= 0 and row.error_code == ErrorCode.NONE
                }
                count += len(found[group.group_id])
        if count > most:
            break
    return found


async def share_lags(connection: Connection, group_ids: Sequence[str], most: int) -> dict[str, int | None]:
    """Return the lags of share groups, which their coordinator reckons, until they have `most` partitions. Raises
    ClientError.

    None where no partition has been read yet.
    """
    found: dict[str, int | None] = {}
    if ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS not in connection.versions:
        return found  # Kafka 4.0, which lists share groups
    count = 0
    for first in range(0, len(group_ids), AT_ONCE):
        asked = [
            DescribeShareGroupOffsetsRequestGroup(group_id=each, topics=None)
            for each in group_ids[first : first + AT_ONCE]
        ]
        response = await connection.request(
            DescribeShareGroupOffsetsRequest(groups=asked), DescribeShareGroupOffsetsResponse
        )
        for group in response.groups:
            if group.error_code == ErrorCode.NONE:
                rows = [row for topic in group.topics for row in topic.partitions if row.error_code == ErrorCode.NONE]
                known = [row.lag for row in rows if row.lag >= 0]
                found[group.group_id] = sum(known) if known or not rows else None
                count += len(rows)
        if count > most:
            break
    return found


async def by_leader(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> tuple[dict[Node, list[TopicPartition]], dict[TopicPartition, str]]:
    """Return the partitions by their leaders, and Kafka's names of the errors of those without one."""
    wanted = list(partitions)
    metadata = await cluster.refresh({at.topic for at in wanted}) if wanted else cluster.metadata
    found: dict[Node, list[TopicPartition]] = {}
    errors: dict[TopicPartition, str] = {}
    for at in wanted:
        node, topic = metadata.leader(at), metadata.topics.get(at.topic)
        if node is not None:
            found.setdefault(node, []).append(at)
        elif topic is not None and at.partition in topic.partitions:
            errors[at] = ErrorCode.LEADER_NOT_AVAILABLE.name
        else:
            errors[at] = metadata.errors.get(at.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION).name
    return found, errors


async def offsets_at(
    cluster: Cluster, partitions: Collection[TopicPartition], timestamp: int = LATEST_TIMESTAMP
) -> Found:
    """Return the first offset at or behind the timestamp of each partition, as ListOffsets names it."""
    leaders, errors = await by_leader(cluster, partitions)
    found = Found({}, errors)
    await find_offsets(cluster, leaders, timestamp, found)
    return found


def total_lag(committed: Committed, ends: Mapping[TopicPartition, int]) -> int | None:
    """Return the sum over the partitions whose end is known; None where none is."""
    known = [max(0, ends[at] - offset) for at, offset in committed.items() if at in ends]
    return sum(known) if known or not committed else None
