"""Topics that a test creates, grows and deletes; a `pykbroker.groups.common.topics.TopicsView`."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy


class ChangingTopics:
    """racks: the racks of every partition's replicas. Each change is a new version."""

    def __init__(self, racks: tuple[str, ...] = (), **partition_counts: int) -> None:
        self.version = 0
        self._racks = racks
        self._counts: dict[str, int] = {}
        self._ids: dict[str, bytes] = {}
        self._created = 0
        for name, count in partition_counts.items():
            self.create(name, count)

    def create(self, name: str, partition_count: int = 1) -> None:
        self._created += 1
        self._ids[name] = self._created.to_bytes(16, "big")
        self.grow(name, partition_count)

    def grow(self, name: str, partition_count: int) -> None:
        self.version += 1
        self._counts[name] = partition_count

    def delete(self, name: str) -> None:
        self.version += 1
        del self._counts[name], self._ids[name]

    @property
    def names(self) -> Iterable[str]:
        return self._ids

    def topic_id(self, name: str) -> bytes | None:
        return self._ids.get(name)

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name, known in self._ids.items() if known == topic_id), None)

    def partition_count(self, topic_id: bytes) -> int:
        return self._counts.get(self.topic_name(topic_id) or "", 0)

    def replica_racks(self, topic_id: bytes) -> Iterable[tuple[str, ...]]:
        return [self._racks] * self.partition_count(topic_id)

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        return frozenset(self._racks)

    def as_of_now(self) -> ChangingTopics:
        now = copy(self)
        now._counts, now._ids = dict(self._counts), dict(self._ids)
        return now
