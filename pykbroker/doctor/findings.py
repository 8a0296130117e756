"""Findings: what is wrong or may become so, what was seen, and what to do about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MOST_NAMES: Final = 10
"""In one text; how many there are beyond them is said."""


class Severity(StrEnum):
    """An error keeps somebody from working now; a warning may, or takes away what is relied upon."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    id: short and stable, for scripts. subject: the address, broker, group or directory that it is about. seen: a fact.
    advice: what to do.
    """

    id: str
    severity: Severity
    subject: str
    seen: str
    advice: str


def error(id_: str, subject: str, seen: str, advice: str) -> Finding:
    return Finding(id_, Severity.ERROR, subject, seen, advice)


def warning(id_: str, subject: str, seen: str, advice: str) -> Finding:
    return Finding(id_, Severity.WARNING, subject, seen, advice)


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 1 where there is an error, 2 where there are warnings alone, and 0 where there is nothing."""
    severities = {each.severity for each in findings}
    if Severity.ERROR in severities:
        return 1
    return 2 if severities else 0


def some(names: Collection[object]) -> str:
    """The first of the names, and how many there are beyond them."""
    shown = [str(each) for each in list(names)[:MOST_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def counted(count: int, noun: str, nouns: str | None = None) -> str:
    """`1 topic`, `2 topics`."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"
