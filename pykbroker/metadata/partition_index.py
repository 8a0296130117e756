"""An index of partitions by broker: Kafka's `BrokersToIsrs` and its like, so that nothing scans all partitions.

The index follows an image record by record. Sets of partitions have no order: whoever writes records of them sorts them
first, so that they come in the same order on every node. Not here: what to do about them (`elections`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from pykbroker.long_work import LongWork

from .image import ImageChanges, MetadataImage, TopicState
from .partition_state import NO_LEADER, PartitionState

PartitionKey = tuple[bytes, int]
"""Topic id and index."""

_NONE: Final[AbstractSet[PartitionKey]] = frozenset()
_STEPS: Final = 4
"""For each partition."""


class PartitionIndex:
    """The partitions of an image by those who are in sync, eligible, lead, or have the partition's log.

    leaderless, imbalanced (not led by the preferred replica), reassigning: of all partitions.
    """

    def __init__(self) -> None:
        self.leaderless: set[PartitionKey] = set()
        self.imbalanced: set[PartitionKey] = set()
        self.reassigning: set[PartitionKey] = set()
        self._known: dict[PartitionKey, PartitionState] = {}
        self._in_sync: defaultdict[int, set[PartitionKey]] = defaultdict(set)
        self._eligible: defaultdict[int, set[PartitionKey]] = defaultdict(set)
        self._in_directory: defaultdict[bytes, set[PartitionKey]] = defaultdict(set)
        self._led: defaultdict[int, int] = defaultdict(int)

    @classmethod
    def of(cls, image: MetadataImage) -> LongWork[PartitionIndex]:
        """The index of all that the image has, which must not change meanwhile."""
        made = cls()
        for topic in image.topics.values():
            for index, partition in topic.partitions.items():
                made._add((topic.topic_id, index), partition)
                yield _STEPS
        return made

    def in_sync(self, broker_id: int) -> AbstractSet[PartitionKey]:
        return self._in_sync.get(broker_id, _NONE)

    def eligible(self, broker_id: int) -> AbstractSet[PartitionKey]:
        """Return the partitions of which the broker is an eligible leader replica."""
        return self._eligible.get(broker_id, _NONE)

    def in_directory(self, directory: bytes) -> AbstractSet[PartitionKey]:
        return self._in_directory.get(directory, _NONE)

    def leads_any(self, broker_id: int) -> bool:
        return self._led.get(broker_id, 0) > 0

    def follow(self, image: MetadataImage, changes: ImageChanges) -> LongWork[None]:
        """Follow what one record changed, be it a topic of many partitions."""
        for topic in changes.deleted_topics.values():
            yield from self._forget(topic)
        for topic_id, index in changes.partitions:
            found = image.topic_by_id(topic_id)
            assert found is not None, "changes name no partitions of topics that are gone"
            self._remove((topic_id, index))
            self._add((topic_id, index), found.partitions[index])
            yield _STEPS

    def _forget(self, topic: TopicState) -> LongWork[None]:
        for index in topic.partitions:
            self._remove((topic.topic_id, index))
            yield _STEPS

    def _add(self, key: PartitionKey, partition: PartitionState) -> None:
        self._known[key] = partition
        for each in self._sets(partition):
            each.add(key)
        self._led[partition.leader] += 1

    def _remove(self, key: PartitionKey) -> None:
        partition = self._known.pop(key, None)
        if partition is not None:
            for each in self._sets(partition):
                each.discard(key)
            self._led[partition.leader] -= 1

    def _sets(self, partition: PartitionState) -> Iterable[set[PartitionKey]]:
        sets = [self._in_sync[each] for each in partition.isr]
        sets += [self._eligible[each] for each in partition.eligible_leader_replicas]
        sets += [self._in_directory[each] for each in partition.directories]
        if partition.leader == NO_LEADER:
            sets.append(self.leaderless)
        if not partition.replicas or partition.leader != partition.replicas[0]:
            sets.append(self.imbalanced)
        if partition.is_reassigning:
            sets.append(self.reassigning)
        return sets
