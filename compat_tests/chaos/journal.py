"""What a run did, to be read afterwards and to be played again: one JSON object a line in `faults.jsonl`.

A line has the fault as it was planned (`kind`, `role`, `draw`, `lasts_s`, `waits`), the `node` that it hit, when it
began and ended (`began_s`, `ended_s`, in seconds from the beginning of the run), and `back_after_s`: how long after its
end every replica was in sync again by the word of every node. That is null where the next fault came first.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from .plan import PlannedFault


@dataclass(frozen=True, slots=True)
class FaultEntry:
    kind: str
    role: str
    draw: float
    lasts_s: float
    waits: bool
    node: int
    began_s: float
    ended_s: float
    back_after_s: float | None

    @property
    def planned(self) -> PlannedFault:
        """The same fault, for the same node."""
        return PlannedFault(*(getattr(self, each.name) for each in fields(PlannedFault)))


class Journal:
    """The entries of one run, each written when its fault is over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries: list[FaultEntry] = []

    def note(self, entry: FaultEntry) -> None:
        self.entries.append(entry)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry)) + "\n")

    def counts(self) -> Counter[tuple[str, str]]:
        """Return how many faults there were, by kind and role."""
        return Counter((each.kind, each.role) for each in self.entries)

    def returns_s(self) -> list[float]:
        """Return how long the cluster took to be whole again, after each fault for which that is known."""
        return [each.back_after_s for each in self.entries if each.back_after_s is not None]


def recorded_faults(lines: Iterable[str]) -> Iterator[PlannedFault]:
    """Yield the faults of an earlier run, in their order. Raises ValueError with the line that is none."""
    for number, line in enumerate(lines, 1):
        try:
            yield FaultEntry(**json.loads(line)).planned
        except (TypeError, ValueError) as error:
            raise ValueError(f"line {number} is no entry of a journal: {error}") from error
