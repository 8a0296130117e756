"""Target assignments, into which go the partitions that an assignor gives to members."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Assignment, TopicPartition


def merged(before: Assignment, partitions: Iterable[TopicPartition]) -> dict[bytes, frozenset[int]]:
    """The partitions by topic. A topic whose partitions have not changed keeps the set it had: most members change
    little."""
    by_topic: dict[bytes, list[int]] = {}
    for topic_id, partition in partitions:
        by_topic.setdefault(topic_id, []).append(partition)
    target = {}
    for topic_id, indexes in sorted(by_topic.items()):
        known = before.get(topic_id)
        now = frozenset(indexes)
        target[topic_id] = known if known is not None and known == now else now
    return target
