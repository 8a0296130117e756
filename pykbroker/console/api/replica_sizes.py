"""Sizes of replicas on the disks of their brokers (DescribeLogDirs), asked of each broker for some seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import trio

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError
from pykbroker.client.metadata import Node
from pykbroker.protocol.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from pykbroker.protocol.topic_partition import TopicPartition

LONGEST_S: Final = 5.0
AT_ONCE: Final = 1000

Sizes = dict[TopicPartition, int]


async def find_sizes(cluster: Cluster, by_node: Mapping[Node, Sequence[TopicPartition]], sizes: Sizes) -> None:
    """Put into `sizes` the bytes of each partition's replica on the node it is asked for; none where nobody tells."""
    async with trio.open_nursery() as nursery:
        for node, partitions in by_node.items():
            nursery.start_soon(_ask, cluster, node, partitions, sizes)


async def _ask(cluster: Cluster, node: Node, partitions: Sequence[TopicPartition], sizes: Sizes) -> None:
    with trio.move_on_after(LONGEST_S):
        try:
            connection = await cluster.node_connection(node)
            for first in range(0, len(partitions), AT_ONCE):
                request = _request(partitions[first : first + AT_ONCE])
                sizes.update(_sizes(await connection.request(request, DescribeLogDirsResponse)))
        except ClientError:  # sizes are an extra, which takes the right to describe the cluster
            return


def _request(partitions: Iterable[TopicPartition]) -> DescribeLogDirsRequest:
    topics: dict[str, DescribableLogDirTopic] = {}
    for at in partitions:
        topics.setdefault(at.topic, DescribableLogDirTopic(topic=at.topic)).partitions.append(at.partition)
    return DescribeLogDirsRequest(topics=list(topics.values()))


def _sizes(response: DescribeLogDirsResponse) -> Iterable[tuple[TopicPartition, int]]:
    return (
        (TopicPartition(topic.name, row.partition_index), row.partition_size)
        for directory in response.results
        for topic in directory.topics
        for row in topic.partitions
        if not row.is_future_key
    )
