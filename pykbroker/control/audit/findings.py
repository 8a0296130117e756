"""Findings of an audit: what clients did on the wire that loses records, repeats them, or may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final

MOST_FINDINGS: Final = 1_000


class Kind(StrEnum):
    """The kinds of findings, by the names that options and answers have."""

    JUMP = "commit-jump"
    """A commit over records that the client was never sent."""
    REWIND = "commit-rewind"
    """A commit behind what was committed."""
    ZOMBIE = "zombie-commit"
    """A commit of a client that is no member any more; it was refused."""
    LATE = "late-acknowledgement"
    """An acknowledgement of a share group's records that came too late; they were delivered again."""
    OUTSIDE = "offsets-outside"
    """Offsets committed outside of the transaction that has the outputs, or others of their offsets."""
    DUPLICATE = "duplicate-send"
    """Records sent again after a retry, without idempotence."""


class UnknownKind(ValueError):
    """There is no kind of findings of that name; the message says which one may be meant."""


def kinds_of(names: Iterable[str]) -> frozenset[Kind]:
    """Return kinds by their names. Raises UnknownKind."""
    found = set()
    for name in names:
        try:
            found.add(Kind(name))
        except ValueError:
            close = get_close_matches(name, list(Kind), n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"there is {', '.join(Kind)}"
            raise UnknownKind(f"an audit has no findings '{name}'; {hint}") from None
    return frozenset(found)


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
        return iter(list(self._kept))

    def __len__(self) -> int:
        return self.counts.total()

    def take(self) -> list[Finding]:
        """Return those that are kept, and begin with none."""
        taken, self._kept, self.counts = self._kept, [], Counter()
        return taken

    def add(self, finding: Finding) -> None:
        self.counts[finding.kind] += 1
        if len(self._kept) < MOST_FINDINGS:
            self._kept.append(finding)
