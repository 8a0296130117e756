"""The lag of a group: log end offsets less committed offsets, as `kafka-consumer-groups --describe` shows it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .group_offsets import fetch_offsets
from .offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, READ_COMMITTED, list_offsets


async def group_lag(cluster: Cluster, group_id: str, topics: Collection[str] = ()) -> dict[TopicPartition, int]:
    """Return the lag of each partition, in offsets; none where the group has no committed offset.

    topics: all partitions of these topics and no others; without them of every topic that the group has a committed
    offset in. A partition without one has its whole log as its lag: nobody has read it yet. Ends are those that a
    consumer with read_committed comes to. Raises UnknownTopic, KafkaError.
    """
    committed = {of: each.offset for of, each in (await fetch_offsets(cluster, group_id)).items()}
    topics = topics or {of.topic for of in committed}
    if not topics:
        return {}
    await cluster.refresh(topics)  # partitions may have come
    wanted = [TopicPartition(name, index) for name in topics for index in (await cluster.topic(name)).partitions]
    starts = await list_offsets(cluster, {of: EARLIEST_TIMESTAMP for of in wanted if of not in committed})
    return await _behind(cluster, {of: committed[of] if of in committed else starts[of].offset for of in wanted})


async def _behind(cluster: Cluster, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    ends = await list_offsets(cluster, dict.fromkeys(positions, LATEST_TIMESTAMP), isolation_level=READ_COMMITTED)
    return {of: max(0, ends[of].offset - offset) for of, offset in sorted(positions.items())}
