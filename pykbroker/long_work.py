"""Work that may take longer than one turn of the event loop, as a generator.

Every yield says how many steps it took since the last one, a step being about a microsecond. Whoever drives the work
lets others have their turn in between (`server.runtime.turns`), or none of them (`whole`), and sees to it that what the
work reads stays as it is meanwhile.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

PORTION: Final = 1000
"""Entries that are looked at between two yields, where an entry is a fraction of a step."""

T = TypeVar("T")
U = TypeVar("U")
HashableT = TypeVar("HashableT", bound=Hashable)
OrderedT = TypeVar("OrderedT", bound="SupportsRichComparison")

LongWork: TypeAlias = Generator[int, None, T]


def whole(work: LongWork[T]) -> T:
    """Return the result of the work, all of it done in one turn."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result


def ordered(entries: Iterable[OrderedT]) -> LongWork[Iterator[OrderedT]]:
    """The entries sorted by the thousand, and merged as far as somebody asks."""
    sorted_portions = []
    for portion in portions(entries):
        sorted_portions.append(sorted(portion))
        yield len(portion) // 2
    return heapq.merge(*sorted_portions)


def counted(entries: Iterable[HashableT]) -> LongWork[Counter[HashableT]]:
    """Count how often each entry occurs."""
    times: Counter[HashableT] = Counter()
    for portion in portions(entries):
        times.update(portion)
        yield len(portion) // 5
    return times


def each_of(entries: Iterable[T], row: Callable[[T], U]) -> LongWork[list[U]]:
    """A small object made for each entry."""
    rows: list[U] = []
    for portion in portions(entries):
        rows += map(row, portion)
        yield len(portion)
    return rows


def portions(entries: Iterable[T], size: int = PORTION) -> Iterator[Sequence[T]]:
    """The entries in their order, so many at a time."""
    iterator = iter(entries)
    while portion := list(islice(iterator, size)):
        yield portion
