"""The lag of a group: log end offsets less committed offsets, as `kafka-consumer-groups --describe` shows it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .cluster import Cluster
from .errors import KafkaError
from .group_offsets import fetch_offsets
from .offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, READ_COMMITTED, list_offsets
from .share_groups import ShareOffset, fetch_share_offsets


async def group_lag(cluster: Cluster, group_id: str, topics: Collection[str] = ()) -> dict[TopicPartition, int]:
    """Return the lag of each partition, in offsets; none where the group has no committed offset.

    topics: all partitions of these topics and no others; without them of every topic that the group has a committed
    offset in. A partition without one has its whole log as its lag: nobody has read it yet. Ends are those that a
    consumer with read_committed comes to. The lag of a share group is what its coordinator tells: the records that are
    to be delivered yet. Raises UnknownTopic, KafkaError.
    """
    try:
        committed = {of: each.offset for of, each in (await fetch_offsets(cluster, group_id)).items()}
    except KafkaError as error:
        shared = (
            None if error.error_code is not ErrorCode.GROUP_ID_NOT_FOUND else await _share_offsets(cluster, group_id)
        )
        if shared is None:
            raise
        return await _share_lag(cluster, shared, topics)
    if not committed:
        shared = await _share_offsets(cluster, group_id)
        if shared:
            return await _share_lag(cluster, shared, topics)
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


async def _share_offsets(cluster: Cluster, group_id: str) -> dict[TopicPartition, ShareOffset] | None:
    """Return the offsets of a share group; None where there is no such group, or the brokers have none of that type."""
    connection = await cluster.retrying(cluster.any_connection)
    if ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS not in connection.versions:
        return None
    try:
        return await fetch_share_offsets(cluster, group_id)
    except KafkaError as error:
        if error.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise


async def _share_lag(
    cluster: Cluster, offsets: Mapping[TopicPartition, ShareOffset], topics: Collection[str]
) -> dict[TopicPartition, int]:
    """Return the lag of each partition; one that no leader has begun with has its whole log as its lag."""
    wanted = {of: told for of, told in offsets.items() if not topics or of.topic in topics}
    lags = {of: told.lag for of, told in wanted.items() if told.lag is not None}
    begins = {of: EARLIEST_TIMESTAMP for of, told in wanted.items() if told.lag is None and told.start_offset is None}
    starts = {of: told.offset for of, told in (await list_offsets(cluster, begins)).items()}
    starts |= {
        of: told.start_offset for of, told in wanted.items() if told.lag is None and told.start_offset is not None
    }
    return lags | await _behind(cluster, starts)
