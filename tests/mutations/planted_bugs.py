"""The list of planted bugs, `bugs/<package>.md`.

Each has a heading, which is a sentence that says what is wrong with the product, and three kinds of lines: `Source:`
is the JIRA or the class of mistakes that it is drawn from, `First:` the tests that are asked first, and `Survives:` why
no test can find it, if none can. A diff says how it is planted; `tests.diffs` refuses one that does not fit the tree
any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.diffs import changed

from .mutant import PACKAGES, ROOT, Mutant

LISTS = Path(__file__).parent / "bugs"

_ENTRY = re.compile(
    r"^## (?P<name>[^\n]+)\n\n"
    r"Source: (?P<source>[^\n]+)\n"
    r"First: (?P<first>[^\n]+)\n"
    r"(?:Survives: (?P<survives>[^\n]+)\n)?"
    r"\n```diff (?P<path>\S+)\n(?P<diff>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_HEADING = re.compile(r"^## ", re.MULTILINE)


@dataclass(frozen=True)
class PlantedBug:
    """One entry of the list."""

    name: str
    package: str
    source: str
    first: tuple[str, ...]
    survives: str | None
    path: str
    diff: str

    def mutant(self, root: Path = ROOT) -> Mutant:
        """Return the product with this bug. Raises BadDiff where it cannot be planted any more."""
        text = changed(self.path, (root / self.path).read_text(), self.diff)
        return Mutant(self.name, self.package, self.path, text, self.first, self.survives)


def planted_bugs(package: str) -> list[PlantedBug]:
    return list(_entries(package, (LISTS / f"{package}.md").read_text()))


def all_planted_bugs() -> list[PlantedBug]:
    return [bug for package in PACKAGES for bug in planted_bugs(package)]


def _entries(package: str, text: str) -> Iterator[PlantedBug]:
    """Raises ValueError where an entry lacks something."""
    for part in _HEADING.split(text)[1:]:
        entry = _ENTRY.match("## " + part)
        if entry is None:
            raise ValueError(f"{package}.md: the entry '{part.splitlines()[0]}' lacks a line, or its diff")
        first = tuple(entry["first"].split())
        yield PlantedBug(
            entry["name"], package, entry["source"], first, entry["survives"], entry["path"], entry["diff"]
        )
