"""A fault rule says which requests it means, which of those it picks, and what becomes of them.

It is chosen by API, client id and topic, and then by number: the n-th, the first few, every n-th, or by chance with a seed.
Chance is drawn for each request by its number among those that fit, so that a run that sends the same sees the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from random import Random
from typing import Final

from pykbroker.protocol.errors import ErrorCode

_ALWAYS: Final = 1.0


class When(StrEnum):
    """Whether the broker has carried out the request when the fault comes."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Match:
    """The requests that a rule means. client_id, topic: patterns with `*` and `?`; None for any."""

    api_key: int | None = None
    client_id: str | None = None
    topic: str | None = None

    def fits_header(self, api_key: int, client_id: str | None) -> bool:
        if self.api_key not in (None, api_key):
            return False
        return self.client_id is None or fnmatchcase(client_id or "", self.client_id)

    def fits_topics(self, topics: frozenset[str]) -> bool:
        return self.topic is None or any(fnmatchcase(topic, self.topic) for topic in topics)


@dataclass(frozen=True, slots=True)
class Pick:
    """Which of the requests that fit are picked, counted from 1.

    nth: this one alone. first: all before it are left alone. times: so many at most. every: one in so many. chance: 0 to 1.
    """

    nth: int | None = None
    first: int = 1
    times: int | None = None
    every: int = 1
    chance: float = _ALWAYS

    def takes(self, number: int, taken: int, seed: str) -> bool:
        """Tell whether the request with this number is picked; `taken` were before it."""
        if self.nth is not None:
            return number == self.nth
        if number < self.first or (self.times is not None and taken >= self.times):
            return False
        if (number - self.first) % self.every:
            return False
        return self.chance >= _ALWAYS or Random(f"{seed}/{number}").random() < self.chance  # noqa: S311 - no secret


@dataclass(frozen=True, slots=True)
class Action:
    """What becomes of a request, in this order: a delay, then an error, or a drop or a cut of the connection.

    delay_ms: before the broker handles it. hold_ms: the answer waits so long behind that. error: the answer has this code,
    and the broker has not carried out the request, or has (`when`). drops: the connection is closed without an answer.
    cuts: it is closed in the middle of the answer's frame.
    """

    delay_ms: float = 0.0
    hold_ms: float = 0.0
    error: ErrorCode | None = None
    when: When = When.BEFORE
    drops: bool = False
    cuts: bool = False


class Rule:
    """A rule of a plan. name: for people, and of its chance."""

    def __init__(self, name: str, match: Match, pick: Pick, action: Action, seed: int) -> None:
        self.name = name
        self.match = match
        self.action = action
        self._pick = pick
        self._seed = f"{seed}/{name}"
        self.fitted = 0
        """How many requests were meant."""
        self.taken = 0
        """How many were picked."""

    def takes(self, topics: frozenset[str]) -> bool:
        """Count a request whose header fits, and tell whether it is picked."""
        if not self.match.fits_topics(topics):
            return False
        self.fitted += 1
        is_taken = self._pick.takes(self.fitted, self.taken, self._seed)
        self.taken += is_taken
        return is_taken


_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)", re.ASCII)
_MS: Final = {"ms": 1.0, "s": 1_000.0, "m": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}


def duration_ms(text: str | float) -> float:
    """Return a duration in milliseconds; a number alone is in seconds. Raises ValueError."""
    if isinstance(text, (int, float)):
        return float(text) * 1000
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a duration like 500ms, 2s, 5m, 1h or 7d")
    return float(match[1]) * _MS[match[2]]
