"""The table of committed offsets of a shard.

An offset keeps what is needed to expire it: its commit time, a retention that the client asked for, the topic's id.
Requests for offsets are served by `offsets` and `offset_commits`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from pykbroker.protocol.schema import NO_UUID

from ..common.records import NO_TIMESTAMP
from .groups_by_topic import GroupsByTopic

Place: TypeAlias = tuple[str, int]
"""Topic and partition, within one group."""


@dataclass(slots=True)
class CommittedOffset:
    """A committed offset.

    expire_timestamp_ms: set where the client asked for a retention time of its own, as OffsetCommit v2-4 could.

    order: grows with the position of the record in the log; an offset that a transaction commits may be older than the
    one in the table. The class is a value, but not frozen, because a hundred thousand are made while a coordinator
    loads.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    topic_id: bytes = NO_UUID
    order: int = field(default=0, compare=False)

    @classmethod
    def from_record(cls, value: OffsetCommitValue, order: int) -> CommittedOffset:
        expires = value.expire_timestamp
        return cls(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            None if expires == NO_TIMESTAMP else expires,
            value.topic_id,
            order,
        )


class CommittedOffsets:
    """Every committed offset of a shard, by group, topic and partition. It changes by replaying records only.

    The offsets of a large transaction come into the table some time after its end: `PendingOffsets.committed_offset`
    looks at both. groups_by_topic: counts pending offsets, too. last_order: the order of the newest offset, committed
    or pending.
    """

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self.groups_by_topic = GroupsByTopic()
        self.last_order = 0

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._by_group.get(group_id, {}).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> Iterator[tuple[str, dict[int, CommittedOffset]]]:
        yield from self._by_group.get(group_id, {}).items()

    def of_topic(self, group_id: str, topic: str) -> Mapping[int, CommittedOffset]:
        return self._by_group.get(group_id, {}).get(topic, {})

    def offsets_of(self, group_id: str) -> Iterator[tuple[Place, CommittedOffset]]:
        for topic, partitions in self.of_group(group_id):
            for partition, offset in partitions.items():
                yield (topic, partition), offset

    def count(self, group_id: str) -> int:
        return sum(map(len, self._by_group.get(group_id, {}).values()))

    def numbered(self, value: OffsetCommitValue) -> CommittedOffset:
        """The offset of a record that is replayed now, newer than every offset before."""
        self.last_order += 1
        return CommittedOffset.from_record(value, self.last_order)

    def put_if_newer(self, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        """Take the offset of a transaction that has ended, unless a newer one was committed since."""
        partitions = self._partitions(group_id, topic)
        existing = partitions.get(partition)
        if existing is None or existing.order < offset.order:
            partitions[partition] = offset

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        if value is not None:
            self.last_order = order = self.last_order + 1
            self._partitions(key.group, key.topic)[key.partition] = CommittedOffset.from_record(value, order)
            return
        topics = self._by_group.get(key.group, {})
        partitions = topics.get(key.topic)
        if partitions is None:
            return
        partitions.pop(key.partition, None)
        if not partitions:
            del topics[key.topic]
            self.groups_by_topic.remove(key.topic, key.group)
        if not topics:
            del self._by_group[key.group]

    def _partitions(self, group_id: str, topic: str) -> dict[int, CommittedOffset]:
        """The partitions of a topic, to which the caller adds one: no dict in the table stays empty."""
        try:
            return self._by_group[group_id][topic]
        except KeyError:
            self.groups_by_topic.add(topic, group_id)
            return self._by_group.setdefault(group_id, {}).setdefault(topic, {})
