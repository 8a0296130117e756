"""Findings of an audit: what clients did on the wire that loses records, repeats them, or may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

MOST_FINDINGS: Final = 1_000


class Kind(StrEnum):
    JUMP = "commit over records never fetched"
    REWIND = "commit backwards"
    ZOMBIE = "commit of a client that is no member any more"
    OUTSIDE = "offsets outside the transaction of the outputs"
    DUPLICATE = "records sent twice"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding. text: one sentence with all of it. facts: the same as values of JSON. at_ms: the wall clock."""

    kind: Kind
    text: str
    at_ms: int
    facts: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind.value, "text": self.text, "at_ms": self.at_ms, **self.facts}


class Findings:
    """The first `MOST_FINDINGS` findings; all are counted."""

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self.counts: Counter[Kind] = Counter()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._kept)

    def __len__(self) -> int:
        return self.counts.total()

    def add(self, finding: Finding) -> None:
        self.counts[finding.kind] += 1
        if len(self._kept) < MOST_FINDINGS:
            self._kept.append(finding)
