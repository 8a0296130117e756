"""Committed offsets: the table of a shard.

What is needed to expire offsets one day (commit time, a retention that the client asked for, the topic's id) is kept
with each of them. How they are committed and read is `offset_requests`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from pykbroker.protocol.schema import NO_UUID

from .records import NO_TIMESTAMP, CoordinatorRecord, offset_commit_record


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """expire_timestamp_ms: set where the client asked for a retention time of its own, as OffsetCommit v2-4 could."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    topic_id: bytes = NO_UUID

    def record_value(self) -> OffsetCommitValue:
        return OffsetCommitValue(
            offset=self.offset,
            leader_epoch=self.leader_epoch,
            metadata=self.metadata,
            commit_timestamp=self.commit_timestamp_ms,
            expire_timestamp=NO_TIMESTAMP if self.expire_timestamp_ms is None else self.expire_timestamp_ms,
            topic_id=self.topic_id,
        )

    @classmethod
    def from_record(cls, value: OffsetCommitValue) -> CommittedOffset:
        expires = value.expire_timestamp
        return cls(
            offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp,
            expire_timestamp_ms=None if expires == NO_TIMESTAMP else expires,
            topic_id=value.topic_id,
        )


class CommittedOffsets:
    """Every committed offset of a shard, by group, topic and partition; it changes by replaying records only."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, dict[int, CommittedOffset]]] = {}

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._by_group.get(group_id, {}).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> Iterator[tuple[str, dict[int, CommittedOffset]]]:
        yield from self._by_group.get(group_id, {}).items()

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        if value is not None:
            topics = self._by_group.setdefault(key.group, {})
            topics.setdefault(key.topic, {})[key.partition] = CommittedOffset.from_record(value)
            return
        topics = self._by_group.get(key.group, {})
        partitions = topics.get(key.topic, {})
        partitions.pop(key.partition, None)
        if not partitions:
            topics.pop(key.topic, None)
        if not topics:
            self._by_group.pop(key.group, None)

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        return [
            offset_commit_record(group_id, topic, partition, None)
            for topic, partitions in self.of_group(group_id)
            for partition in partitions
        ]
