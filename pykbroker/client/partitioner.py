"""The choice of a record's partition, as Kafka's own producer makes it (`BuiltInPartitioner`).

Keys are hashed with murmur2, so that every client sends one key to the same partition. Records without a key stay on
one partition until its batch is full (KIP-480); the choice is not weighted by the partitions' load (KIP-794).
"""

from __future__ import annotations

from random import Random

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """32 bits, unsigned; Kafka's seed."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    whole = length & ~3
    for position in range(0, whole, 4):
        k = int.from_bytes(data[position : position + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if length > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_for_key(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitions:
    """The current partition of each topic for records without a key."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._current: dict[str, int] = {}

    def partition(self, topic: str, partitions: int) -> int:
        current = self._current.get(topic)
        if current is None or current >= partitions:
            current = self._current[topic] = self._rng.randrange(partitions)
        return current

    def batch_is_full(self, topic: str, partitions: int) -> None:
        """The next record goes elsewhere, where there is an elsewhere."""
        if partitions > 1:
            step = self._rng.randrange(1, partitions)
            self._current[topic] = (self._current.get(topic, 0) + step) % partitions
