"""A large member's next step, computed beside the event loop before its heartbeat is carried out.

A member may have a hundred thousand partitions. What its heartbeat comes to, its record and its answer are computed of
values, in a thread, and the step itself puts them in place. Other steps may come in between: the step takes what was
prepared only if all that it was computed of is still the same, the very objects where they are values. Otherwise the
member is told nothing new, and hears of it with a later heartbeat, as of an assignment that is not computed yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Protocol

_WEIGHT_OF_TOPIC: Final = 5
"""How much more a topic costs than one of its partitions."""


class Preparation(Protocol):
    """A heartbeat whose outcome is to be computed in a thread."""

    def run(self) -> object:
        """Compute it. To be called in a thread; it changes nothing."""
        ...

    def is_current(self) -> bool:
        """Tell whether all that it is computed of is still so. To be called on the event loop."""
        ...


def is_large(assignments: Iterable[Mapping[bytes, Collection[int]]], most: int) -> bool:
    """Tell whether the assignments, partitions by topic id, cost more together than so many partitions."""
    left = most
    for assignment in assignments:
        left -= _WEIGHT_OF_TOPIC * len(assignment)
        if left < 0:
            return True
        left -= sum(map(len, assignment.values()))
        if left < 0:
            return True
    return False
