"""The orders in which Java's `HashMap` and `PriorityQueue` give their elements: results of Kafka's depend on them.

The order within one slot of a table is that of insertion. Java makes a tree of a slot with eight entries or more, in a
table of 64 or more; the order in such a tree may be another, and is not followed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from pykbroker.java_hash import java_hash

T = TypeVar("T")

_DEFAULT_CAPACITY = 16


def in_table_order(keys: Iterable[str], capacity: int = _DEFAULT_CAPACITY) -> list[str]:
    """The keys in the order of a `HashMap` into which they were put one after the other.

    capacity: that the table was made for; at three quarters of its size it doubles.
    """
    put = list(dict.fromkeys(keys))
    size = 1
    while size < capacity:
        size *= 2
    while len(put) * 4 > size * 3:
        size *= 2
    return sorted(put, key=lambda key: _spread(java_hash(key)) & (size - 1))


def in_order_of_computed_table(keys: Iterable[str], capacity: int) -> list[str]:
    """The keys in the order of a `HashMap` whose `computeIfAbsent` was called with one after the other.

    keys: in the order of the calls, those that came again included. Such a table puts a new key before the others of
    its slot, and grows when it is called once more after it has become too full.
    """
    size = 1
    while size < capacity:
        size *= 2
    known: dict[str, None] = {}
    for key in keys:
        if len(known) > size * 3 // 4:
            size *= 2
        known[key] = None
    latest_first = list(reversed(known))
    return sorted(latest_first, key=lambda key: _spread(java_hash(key)) & (size - 1))


def _spread(value: int) -> int:
    unsigned = value & 0xFFFFFFFF
    return unsigned ^ (unsigned >> 16)


class JavaPriorityQueue(Generic[T]):
    """A heap that gives elements of equal weight in Java's order. weight: of an element, as it is when it is asked."""

    def __init__(self, weight: Callable[[T], float], elements: Iterable[T] = ()) -> None:
        self._weight = weight
        self._heap: list[T] = []
        for element in elements:
            self.add(element)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, element: T) -> None:
        heap, weight = self._heap, self._weight(element)
        at = len(heap)
        heap.append(element)
        while at > 0:
            parent = (at - 1) >> 1
            if weight >= self._weight(heap[parent]):
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = element

    def poll(self) -> T:
        """Remove the lightest element. Raises IndexError where there is none."""
        heap = self._heap
        first, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return first

    def _sift_down(self, element: T) -> None:
        heap, weight = self._heap, self._weight(element)
        size, at = len(heap), 0
        while at < size >> 1:
            child = 2 * at + 1
            least = self._weight(heap[child])
            if child + 1 < size and (right := self._weight(heap[child + 1])) < least:
                child, least = child + 1, right
            if weight <= least:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = element
