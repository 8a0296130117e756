"""The listener of a pipeline: lines for the user, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: batches, records and bytes of keys and values so far, and offsets that are left."""

    batches: int
    records: int
    size_bytes: int
    left: int


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener. say: takes a line. progress: is called after each batch."""

    say: Callable[[str], None] = lambda line: None
    progress: Callable[[Progress], None] = lambda progress: None


_NAMED = 5


def names_of(topics: Collection[str]) -> str:
    """The first of the names, and how many more there are."""
    names = ", ".join(sorted(topics)[:_NAMED])
    return names if len(topics) <= _NAMED else f"{names} and {len(topics) - _NAMED} more"
