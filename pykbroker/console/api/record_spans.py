"""The spans of a topic's partitions, as their leaders tell them to a reader of an isolation level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import trio

from pykbroker.client.errors import KafkaError, UnknownTopic
from pykbroker.client.metadata import Node
from pykbroker.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from pykbroker.client.spans import Span
from pykbroker.console.endpoint import Asking
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.topic_partition import TopicPartition

from .partition_offsets import Found, find_offsets
from .topic import leaders
from .topic_rows import metadata_of

ByLeader = Mapping[Node, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class TopicSpans:
    """The spans of a topic's partitions, or of one. total: the partitions of the topic; errors: Kafka's names of the
    reasons where a partition has no span.
    """

    spans: Mapping[int, Span]
    errors: Mapping[int, str]
    total: int
    by_leader: ByLeader


async def spans_of(asking: Asking, name: str, partition: int | None, isolation_level: int) -> TopicSpans:
    """Return the spans of all partitions of a topic, or of one. Raises UnknownTopic, KafkaError, ClientError."""
    response, found = await metadata_of(asking.cluster, name)
    rows = [each for each in found.partitions if partition is None or each.partition_index == partition]
    if not rows:
        raise UnknownTopic(f"Topic '{name}' has no partition {partition}: it has 0 to {len(found.partitions) - 1}")
    by_leader = await asking.threads.run(leaders, response, name, rows)
    first, end = Found({}, {}), Found({}, {})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(find_offsets, asking.cluster, by_leader, EARLIEST_TIMESTAMP, first, isolation_level)
        nursery.start_soon(find_offsets, asking.cluster, by_leader, LATEST_TIMESTAMP, end, isolation_level)
    partitions = [TopicPartition(name, each.partition_index) for each in rows]
    spans, errors = await asking.threads.run(_joined, partitions, first, end)
    if partition is not None and partition in errors:
        raise KafkaError(ErrorCode[errors[partition]], f"Partition {name}-{partition}: {errors[partition]}")
    return TopicSpans(spans, errors, len(found.partitions), by_leader)


def _joined(partitions: Sequence[TopicPartition], first: Found, end: Found) -> tuple[dict[int, Span], dict[int, str]]:
    spans: dict[int, Span] = {}
    errors: dict[int, str] = {}
    for at in sorted(partitions):
        if at in first.offsets and at in end.offsets:
            low = first.offsets[at]
            spans[at.partition] = Span(low, max(low, end.offsets[at]))
        else:
            no_leader = ErrorCode.LEADER_NOT_AVAILABLE.name
            errors[at.partition] = first.errors.get(at) or end.errors.get(at) or no_leader
    return spans, errors


async def offsets_at(asking: Asking, topic: TopicSpans, timestamp_ms: int, isolation_level: int) -> dict[int, int]:
    """Return the offset of the first record in each partition that is as young, or its end where none is."""
    found = Found({}, {})
    await find_offsets(asking.cluster, topic.by_leader, timestamp_ms, found, isolation_level)
    by_partition = {at.partition: offset for at, offset in found.offsets.items()}
    return {
        partition: span.inside(by_partition[partition]) if by_partition.get(partition, -1) >= 0 else span.end
        for partition, span in topic.spans.items()
    }
