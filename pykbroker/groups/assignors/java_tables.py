"""The order in which Java's `HashMap` and `HashSet` give their entries.

Kafka's assignor of share groups goes through such tables, and what it assigns depends on their order. A table of Java's
has a number of buckets, a power of two; an entry goes to the bucket of its hash, behind those that are in it already;
and the buckets double as entries come, never to become fewer. So entries come in the order of their buckets, and within
one as they were put in, or the other way round in a map that is filled by `computeIfAbsent`. One thing is not followed:
a bucket with more than eight entries in a large table becomes a tree, whose root comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from pykbroker.java_hash import java_hash

KeyT = TypeVar("KeyT")

_LEAST_BUCKETS: Final = 16
_MOST_IN_BUCKET: Final = 8
_BUCKETS_WITH_TREES: Final = 64
_MASK: Final = 0xFFFFFFFF


def hash_of_int(value: int) -> int:
    return _spread(value)


def hash_of_text(text: str) -> int:
    return _spread(java_hash(text) & _MASK)


def hash_of_uuid(uuid: bytes) -> int:
    return _spread(_plain_hash_of_uuid(uuid))


def hash_of_partition(partition: tuple[bytes, int]) -> int:
    """The hash of the record `TopicIdPartition`."""
    return _spread((31 * _plain_hash_of_uuid(partition[0]) + partition[1]) & _MASK)


def _plain_hash_of_uuid(uuid: bytes) -> int:
    number = int.from_bytes(uuid, "big")
    half = number >> 64 ^ number & 0xFFFFFFFFFFFFFFFF
    return (half >> 32 ^ half) & _MASK


def _spread(value: int) -> int:
    """The higher bits count, too, in a table of few buckets."""
    return value ^ value >> 16


def buckets_for(entries: int) -> int:
    """The buckets of a table that Kafka makes for so many entries (`AssignorHelpers.newHashMap`)."""
    return _power_of_two(int((entries + 1) / 0.75 + 1))


def buckets_of_copy(entries: int) -> int:
    """The buckets of a set that Java makes of so many entries."""
    return _power_of_two(max(int(entries / 0.75) + 1, _LEAST_BUCKETS))


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()


class JavaTable(Generic[KeyT]):
    """The keys of a table, in Java's order. hash_of: the spread hash of a key; buckets: how many there are at first."""

    __slots__ = ("_buckets", "_hash_of", "_keys")

    def __init__(
        self, hash_of: Callable[[KeyT], int], keys: Iterable[KeyT] = (), buckets: int = _LEAST_BUCKETS
    ) -> None:
        self._hash_of = hash_of
        self._buckets = buckets
        self._keys: dict[KeyT, None] = {}
        for key in keys:
            self.add(key)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[KeyT]:
        """The keys as they are now, whatever is added or removed meanwhile."""
        mask, hash_of = self._buckets - 1, self._hash_of
        return iter(sorted(self._keys, key=lambda key: hash_of(key) & mask))

    def add(self, key: KeyT) -> None:
        if key in self._keys:
            return
        if self._buckets < _BUCKETS_WITH_TREES and len(self._keys) >= _MOST_IN_BUCKET and self._is_full_for(key):
            self._buckets *= 2
        self._keys[key] = None
        if len(self._keys) > 0.75 * self._buckets:
            self._buckets *= 2

    def _is_full_for(self, key: KeyT, most: int = _MOST_IN_BUCKET) -> bool:
        """Tell whether the key's bucket has so many entries that Java makes more buckets rather than a tree."""
        mask, hash_of = self._buckets - 1, self._hash_of
        bucket = hash_of(key) & mask
        return sum(hash_of(other) & mask == bucket for other in self._keys) >= most

    def remove(self, key: KeyT) -> None:
        del self._keys[key]


class ComputedTable(JavaTable[KeyT]):
    """The keys of a map that is filled by `computeIfAbsent`: a new entry comes first in its bucket."""

    __slots__ = ()

    def __iter__(self) -> Iterator[KeyT]:
        mask, hash_of = self._buckets - 1, self._hash_of
        newest_first = list(reversed(self._keys))
        newest_first.sort(key=lambda key: hash_of(key) & mask)
        return iter(newest_first)

    def add(self, key: KeyT) -> None:
        if key in self._keys:
            return
        if len(self._keys) > 0.75 * self._buckets:
            self._buckets *= 2
        is_small = self._buckets < _BUCKETS_WITH_TREES and len(self._keys) >= _MOST_IN_BUCKET - 1
        grows = is_small and self._is_full_for(key, _MOST_IN_BUCKET - 1)
        self._keys[key] = None
        if grows:
            self._buckets *= 2
