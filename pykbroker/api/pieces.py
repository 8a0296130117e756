"""Requests of many partitions that a coordinator answers: it gets so many of them at a time.

Each partition is answered for itself, so that a client sees no difference but where something happens in between: then
some partitions have an error and others have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Final, TypeVar

PARTITIONS_AT_ONCE: Final = 500
_STEPS_OF_ASKING: Final = 100

T = TypeVar("T")
RequestT = TypeVar("RequestT", bound=Any)


def in_pieces(entries: Iterable[tuple[T, Sequence[Any]]]) -> Iterator[list[tuple[T, Sequence[Any]]]]:
    """The entries with their partitions; an entry of many comes several times."""
    piece: list[tuple[T, Sequence[Any]]] = []
    room = PARTITIONS_AT_ONCE
    for entry, partitions in entries:
        start = 0
        while start < len(partitions):
            taken = partitions[start : start + room]
            piece.append((entry, taken))
            start += len(taken)
            room -= len(taken)
            if not room:
                yield piece
                piece, room = [], PARTITIONS_AT_ONCE
    if piece:
        yield piece


def steps_of(piece: Iterable[tuple[object, Sequence[object]]], steps_of_partition: int) -> int:
    """Return the steps that a piece takes: most name a few partitions, and asking takes some steps by itself."""
    return _STEPS_OF_ASKING + steps_of_partition * sum(len(partitions) for _, partitions in piece)


def with_topics(request: RequestT, topics: list[Any] | None) -> RequestT:
    """Return the same request for other topics."""
    other = copy(request)
    other.topics = topics
    return other
