"""Java's hash of a text: where Kafka keeps a key, and in which order its tables give their entries."""

from __future__ import annotations

from functools import lru_cache

_REMEMBERED = 1 << 16
"""Those who ask again and again, a commit each second, are asked for theirs once."""
_FIBONACCI = -7046029254386353131
"""What `BaseHashTable` multiplies a hash with; the highest bits are the slot."""


@lru_cache(_REMEMBERED)
def java_hash(text: str) -> int:
    """`text.hashCode()`, over UTF-16 units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def abs_java_hash(text: str) -> int:
    """`Utils.abs(text.hashCode())` of Kafka: 0 for the one value that has no absolute value."""
    value = java_hash(text)
    return 0 if value == -(1 << 31) else abs(value)


def place_in_a_table(text: str) -> int:
    """Return the sort key by which Kafka's `TimelineHashMap` lists keys, but for those that share a slot there."""
    return java_hash(text) * _FIBONACCI & 0xFFFFFFFFFFFFFFFF
