"""The span of a partition: its first offset and the one behind its last record, as a reader sees them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets of a partition: from `first` to the one before `end`."""

    first: int
    end: int

    def inside(self, offset: int) -> int:
        return min(max(offset, self.first), self.end)
