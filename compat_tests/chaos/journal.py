"""What a run did, to be read afterwards and to be played again: one JSON object a line in `faults.jsonl`.

A line has the fault as it was planned (`kind`, `role`, `draw`, `lasts_s`, `waits`), the `node` that it hit, when it
began and ended (`began_s`, `ended_s`, in seconds from the beginning of the run), and two times from its end on:
`back_after_s`, until every replica was in sync again by the word of every node, which is null where the next fault came
first; and `nodes_back_after_s`, until each node that it hit was back, which is null for a node that another fault hit
first (`returns.py`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from .plan import PlannedFault
from .returns import Returns


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
    nodes_back_after_s: dict[str, float | None] = field(default_factory=dict)

    @property
    def planned(self) -> PlannedFault:
        """The same fault, for the same node."""
        return PlannedFault(*(getattr(self, each.name) for each in fields(PlannedFault)))


class Journal:
    """A context manager: the entries of one run, each written when its fault is over and it is known of each node that
    was hit when it was back; at the end of the run where that is never known.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unsettled: list[tuple[FaultEntry, Returns]] = []
        self.entries: list[FaultEntry] = []
        """Those that are written."""

    def note(self, entry: FaultEntry, returns: Returns) -> None:
        self._unsettled.append((entry, returns))
        self._write_settled()

    def close(self) -> None:
        for _, returns in self._unsettled:
            returns.give_up()
        self._write_settled()

    def _write_settled(self) -> None:
        """In the order of the faults."""
        while self._unsettled and not self._unsettled[0][1].awaited:
            entry, returns = self._unsettled.pop(0)
            entry = replace(
                entry, nodes_back_after_s={f"{node}": told for node, told in sorted(returns.back_after_s.items())}
            )
            self.entries.append(entry)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(entry)) + "\n")

    def counts(self) -> Counter[tuple[str, str]]:
        """Return how many faults there were, by kind and role."""
        return Counter((each.kind, each.role) for each in self.entries)

    def returns_s(self) -> list[float]:
        """Return how long the cluster took to be whole again, after each fault for which that is known."""
        return [each.back_after_s for each in self.entries if each.back_after_s is not None]

    def nodes_returns(self) -> NodesReturns:
        return returns_of(self.entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class NodesReturns:
    """seconds: how long nodes took to be back, the shortest first. unknown: of how many it is not known."""

    seconds: list[float]
    unknown: int

    def within_s(self, share: float) -> float:
        """Return the time within which this share of the nodes was back, 1 for all; 0 where there was none."""
        return self.seconds[math.ceil(share * len(self.seconds)) - 1] if self.seconds else 0.0

    def __str__(self) -> str:
        return (
            f"{len(self.seconds)} times a node was back, after {self.within_s(0.5):.1f} s (half of them), "
            f"{self.within_s(0.99):.1f} s (99 %), {self.within_s(1):.1f} s (all); "
            f"{self.unknown} times another fault hit it first"
        )


def returns_of(entries: Iterable[FaultEntry]) -> NodesReturns:
    told = [back_after_s for each in entries for back_after_s in each.nodes_back_after_s.values()]
    return NodesReturns(sorted(each for each in told if each is not None), told.count(None))


def recorded_entries(lines: Iterable[str]) -> Iterator[FaultEntry]:
    """Yield the entries of an earlier run, in their order. Raises ValueError with the line that is none."""
    for number, line in enumerate(lines, 1):
        try:
            yield FaultEntry(**json.loads(line))
        except (TypeError, ValueError) as error:
            raise ValueError(f"line {number} is no entry of a journal: {error}") from error


def recorded_faults(lines: Iterable[str]) -> Iterator[PlannedFault]:
    """Yield the faults of an earlier run, in their order. Raises ValueError with the line that is no entry."""
    return (each.planned for each in recorded_entries(lines))
