"""The view that the rules of groups have of topics: a view of the metadata that the driver gives to a shard.

A group notices by a hash that its topics have changed (KIP-1101). The hash is Kafka's, XXH3 over the values in the
order of `Utils.computeTopicHash`, so that the next coordinator of the group, which may be Kafka's, computes the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from itertools import repeat
from operator import add
from typing import Final, Protocol

import xxhash

from pykbroker.long_work import LongWork

NO_HASH: Final = 0
FEW_TOPICS: Final = 100
"""Up to so many topics are hashed at once, and not in turns."""
_HASH_VERSION: Final = 0
_INT: Final = struct.Struct("<i")
_LONG: Final = struct.Struct("<q")
_HEAD: Final = struct.Struct("<b8s8s")


class TopicsView(Protocol):
    """The newest state of all topics. A view is an assignor's `TopicDescriber`, too.

    The driver's view is `server.coordinators.group_topics.ImageTopics`; it calls `GroupShard.on_topics_changed`.
    """

    @property
    def version(self) -> int:
        """The version of the metadata; later versions are larger."""
        ...

    @property
    def names(self) -> Iterable[str]: ...

    def topic_id(self, name: str) -> bytes | None: ...
    def topic_name(self, topic_id: bytes) -> str | None: ...

    def partition_count(self, topic_id: bytes) -> int:
        """0 for a topic that does not exist."""
        ...

    def replica_racks(self, topic_id: bytes) -> Iterable[tuple[str, ...]]:
        """Return for each partition, in order, the racks of the replicas whose brokers have one."""
        ...

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]: ...

    def as_of_now(self) -> TopicsView:
        """The topics as they are now, which no later change reaches: a thread may read them."""
        ...


class FixedTopics:
    """Topics that do not change, on brokers without racks. topics: id and number of partitions by name."""

    def __init__(self, topics: Mapping[str, tuple[bytes, int]]) -> None:
        self._topics = topics
        self._names = {topic_id: name for name, (topic_id, _) in topics.items()}

    @property
    def version(self) -> int:
        return 0

    @property
    def names(self) -> Iterable[str]:
        return self._topics

    def topic_id(self, name: str) -> bytes | None:
        return self._topics[name][0] if name in self._topics else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._names.get(topic_id)

    def partition_count(self, topic_id: bytes) -> int:
        name = self._names.get(topic_id)
        return 0 if name is None else self._topics[name][1]

    def replica_racks(self, topic_id: bytes) -> Iterable[tuple[str, ...]]:
        return repeat((), self.partition_count(topic_id))

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        return frozenset()

    def as_of_now(self) -> TopicsView:
        return self


NO_TOPICS: Final = FixedTopics({})


def topic_ids(topics: TopicsView, names: Iterable[str]) -> frozenset[bytes]:
    """The ids of the topics that exist."""
    found = (topics.topic_id(name) for name in names)
    return frozenset(topic_id for topic_id in found if topic_id is not None)


class MetadataHash:
    """Hashes over sets of topics. The hash of each topic is kept until the topic changes; shards of a node may share
    it."""

    def __init__(self, topics: TopicsView) -> None:
        self._topics = topics
        self._known: dict[str, int] = {}
        self._forgotten: dict[str, None] = {}

    def forget(self, name: str) -> None:
        if self._known.pop(name, None) is not None:
            self._forgotten[name] = None

    def forget_all(self) -> None:
        self._forgotten.update(dict.fromkeys(self._known))
        self._known.clear()

    @property
    def has_forgotten_many(self) -> bool:
        return len(self._forgotten) > FEW_TOPICS

    def learn_again(self) -> LongWork[None]:
        """Hashes again the topics that were known before they changed, so that no heartbeat has to hash very many."""
        while self._forgotten:
            yield self._learn(self._forgotten.popitem()[0])

    def learn(self, names: Iterable[str]) -> LongWork[None]:
        """Hashes topics that a member is about to subscribe to."""
        for name in names:
            yield self._learn(name)

    def _learn(self, name: str) -> int:
        """Hash a topic that is not known. Returns how many steps of long work that took."""
        topic_id = self._topics.topic_id(name)
        if topic_id is None or name in self._known:
            return 1
        self._of_topic(name)
        return 5 + self._topics.partition_count(topic_id) // 4

    def of(self, names: Iterable[str]) -> int:
        """The hash over the topics that exist, in the order of their names."""
        existing = sorted(name for name in names if self._topics.topic_id(name) is not None)
        if not existing:
            return NO_HASH
        return _xxh3(b"".join(_LONG.pack(self._of_topic(name)) for name in existing))

    def _of_topic(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = topic_hash(self._topics, name)
        return self._known[name]


def topic_hash(topics: TopicsView, name: str) -> int:
    topic_id = topics.topic_id(name)
    if topic_id is None:
        return NO_HASH
    count = topics.partition_count(topic_id)
    # Java puts the halves of an id as numbers, and the hash takes numbers in little-endian order.
    parts = [_HEAD.pack(_HASH_VERSION, topic_id[7::-1], topic_id[:7:-1]), _string(name), _INT.pack(count)]
    racks = list(map(_HashedRacks().__getitem__, topics.replica_racks(topic_id)))
    if any(racks):
        parts += map(add, map(_INT.pack, range(count)), racks)
    else:
        parts.append(struct.pack(f"<{count}i", *range(count)))
    return _xxh3(b"".join(parts))


class _HashedRacks(dict[tuple[str, ...], bytes]):
    """The racks of a partition as the hash takes them. They are kept, because most partitions share theirs with
    others."""

    def __missing__(self, racks: tuple[str, ...]) -> bytes:
        self[racks] = hashed = b"".join(map(_rack, sorted(racks)))
        return hashed


def _rack(rack: str) -> bytes:
    return _INT.pack(len(_units(rack)) // 2) + _string(rack)


def _xxh3(data: bytes) -> int:
    digest: int = xxhash.xxh3_64_intdigest(data)
    return digest - (1 << 64) if digest >= 1 << 63 else digest


def _string(text: str) -> bytes:
    """The text's UTF-16 units, and behind them their number."""
    units = _units(text)
    return units + _INT.pack(len(units) // 2)


def _units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")
