"""Offsets that nobody needs any more: too old (KIP-211), or of a topic that was deleted.

An offset is kept for `offsets.retention.minutes` after the group became empty, or, where members still come without
reading the topic and where a group has offsets only, after its commit. A group without members and offsets goes too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pykbroker.protocol.schema import NO_UUID

from .classic_group import EMPTY, STABLE, ClassicGroup
from .config import GroupConfig
from .context import Step
from .offsets import CommittedOffset, CommittedOffsets
from .records import NO_TIMESTAMP, offset_commit_record


class OffsetCleanup:
    def __init__(self, config: GroupConfig, offsets: CommittedOffsets) -> None:
        self._config = config
        self._offsets = offsets

    def expire(self, group: ClassicGroup, step: Step) -> bool:
        """Whether nothing is left of the group's offsets."""
        expired = [place for place in self._places(group.group_id) if self._is_expired(group, *place, step)]
        kept = sum(1 for _ in self._places(group.group_id)) - len(expired)
        for topic, partition, _ in expired:
            step.append(offset_commit_record(group.group_id, topic, partition, None))
        if expired:
            step.because(f"group {group.group_id}: {len(expired)} offsets expired")
        return not kept

    def _is_expired(self, group: ClassicGroup, topic: str, partition: int, offset: CommittedOffset, step: Step) -> bool:
        since_ms = _unused_since_ms(group, topic, offset)
        if since_ms is None:
            return False
        if offset.expire_timestamp_ms is not None:
            return step.timestamp_ms >= offset.expire_timestamp_ms
        return step.timestamp_ms - since_ms >= self._config.offsets_retention_ms

    def forget_topics(
        self, group: ClassicGroup, topic_ids: Collection[bytes], names: Collection[str], step: Step
    ) -> None:
        """names: where an offset was committed without an id, its topic's name tells."""
        gone = [
            (topic, partition)
            for topic, partition, offset in self._places(group.group_id)
            if offset.topic_id in topic_ids or (offset.topic_id == NO_UUID and topic in names)
        ]
        for topic, partition in gone:
            step.append(offset_commit_record(group.group_id, topic, partition, None))
        if gone:
            step.because(f"group {group.group_id}: {len(gone)} offsets of deleted topics")

    def _places(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        for topic, partitions in self._offsets.of_group(group_id):
            for partition, offset in partitions.items():
                yield topic, partition, offset


def _unused_since_ms(group: ClassicGroup, topic: str, offset: CommittedOffset) -> int | None:
    """None while the offset is, or may be, in use."""
    if group.is_subscribed_to(topic):
        return None
    if group.protocol_type is None:
        return offset.commit_timestamp_ms
    if group.state is EMPTY:
        since_ms = group.state_timestamp_ms
        return offset.commit_timestamp_ms if since_ms == NO_TIMESTAMP else since_ms
    if group.state is STABLE and group.topics is not None:
        return offset.commit_timestamp_ms
    return None
