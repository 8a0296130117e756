"""Offsets that were committed in transactions which have not ended yet (KIP-98, KIP-447).

They count once their producer's transaction is committed. Until then their partitions are unstable: readers who asked
for stable offsets have to wait, and nothing of these partitions expires. A tombstone takes pending offsets along. The
model is the transactional half of Kafka's `OffsetMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pykbroker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue

from .offsets import CommittedOffset, CommittedOffsets

Place: TypeAlias = tuple[str, int]
"""Topic and partition, within one group."""


class PendingOffsets:
    """offsets: where they go when their transaction is committed."""

    def __init__(self, offsets: CommittedOffsets) -> None:
        self._offsets = offsets
        self._by_producer: dict[int, dict[tuple[str, Place], CommittedOffset]] = {}
        # Which producers have something pending; no dict in it is ever empty.
        self._producers: dict[str, dict[Place, dict[int, None]]] = {}

    def __contains__(self, group_id: str) -> bool:
        """Whether anything of the group is pending."""
        return group_id in self._producers

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return (topic, partition) in self._producers.get(group_id, ())

    def as_of_now(self, group_id: str) -> Mapping[Place, object]:
        """Where something is pending, unchanged for ever."""
        return self._producers.get(group_id, {}).copy()

    def places(self, group_id: str) -> Iterator[Place]:
        yield from self._producers.get(group_id, ())

    def offsets_at(self, group_id: str, topic: str, partition: int) -> Iterator[CommittedOffset]:
        """What producers wrote there."""
        place = topic, partition
        for producer_id in self._producers.get(group_id, {}).get(place, ()):
            yield self._by_producer[producer_id][group_id, place]

    def add(self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """In a transaction the last commit of a partition counts."""
        place = key.topic, key.partition
        pending = self._by_producer.setdefault(producer_id, {})
        pending[key.group, place] = self._offsets.in_order(value)
        places = self._producers.setdefault(key.group, {})
        if place not in places:
            places[place] = {}
            self._offsets.groups_by_topic.add(key.topic, key.group)
        places[place][producer_id] = None

    def drop(self, group_id: str, topic: str, partition: int) -> None:
        """The partition's offset was deleted, whoever may still be about to commit one."""
        place = topic, partition
        places = self._producers.get(group_id, {})
        if place not in places:
            return
        for producer_id in places.pop(place):
            self._forget(producer_id, group_id, place)
        self._offsets.groups_by_topic.remove(topic, group_id)
        if not places:
            del self._producers[group_id]

    def _forget(self, producer_id: int, group_id: str, place: Place) -> None:
        pending = self._by_producer[producer_id]
        del pending[group_id, place]
        if not pending:
            del self._by_producer[producer_id]

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """The producer's transaction has ended. It may have written nothing here."""
        for (group_id, place), offset in self._by_producer.pop(producer_id, {}).items():
            self._settle(producer_id, group_id, place)
            if is_commit:
                self._offsets.put_if_newer(group_id, *place, offset)

    def _settle(self, producer_id: int, group_id: str, place: Place) -> None:
        places = self._producers[group_id]
        del places[place][producer_id]
        if not places[place]:
            del places[place]
            self._offsets.groups_by_topic.remove(place[0], group_id)
        if not places:
            del self._producers[group_id]
