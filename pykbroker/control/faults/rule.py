"""A fault rule says which requests it means, which of those it picks, and what becomes of them.

It is chosen by API, client id and topic, and then by number: the n-th, the first few, every n-th, or by chance with a
seed. Chance is drawn for each request by its number among those that fit, so that a run that sends the same sees the
same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any, Final

from pykbroker.protocol.api_keys import api_name
from pykbroker.protocol.errors import ErrorCode

from .condition import Condition
from .match import Match

_CERTAIN: Final = 1.0


class When(StrEnum):
    """The moment of a fault: before the broker carries out the request, or behind that."""

    BEFORE = "before"
    AFTER = "after"


class Held(StrEnum):
    """The thing that a barrier keeps back: the request, which the broker has not handled, or the answer to it."""

    REQUEST = "request"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Pick:
    """The choice among the requests that fit, counted from 1.

    nth: this one alone. skip: so many are left alone before anything else counts. first: the first so many behind them.
    times: so many at most. every: one in so many. chance: 0 to 1.
    """

    nth: int | None = None
    skip: int = 0
    first: int | None = None
    times: int | None = None
    every: int = 1
    chance: float = _CERTAIN

    def takes(self, number: int, taken: int, seed: str) -> bool:
        """Tell whether the request with this number is picked; `taken` were before it."""
        if self.nth is not None:
            return number == self.nth
        number -= self.skip
        if number < 1 or (self.first is not None and number > self.first):
            return False
        if (self.times is not None and taken >= self.times) or number % self.every:
            return False
        return self.chance >= _CERTAIN or Random(f"{seed}/{number}").random() < self.chance  # noqa: S311 - no secret

    def is_over(self, number: int, taken: int) -> bool:
        """Tell whether nothing is picked any more behind the request with this number."""
        if self.nth is not None:
            return number >= self.nth
        is_used_up = self.times is not None and taken >= self.times
        return is_used_up or (self.first is not None and number >= self.skip + self.first)


@dataclass(frozen=True, slots=True)
class Action:
    """The fate of a request.

    delay_ms: before the broker handles it. hold_ms: the answer waits so long. error: the answer has this code, and the
    broker has not carried out the request, or has (`when`). drop: the connection is closed without an answer, and
    likewise. cuts: it is closed in the middle of the answer's frame. until: a barrier, which keeps back the request or
    the answer (`held`), for `timeout_ms` at most.
    """

    delay_ms: float = 0.0
    hold_ms: float = 0.0
    error: ErrorCode | None = None
    when: When = When.BEFORE
    drop: When | None = None
    cuts: bool = False
    until: Condition | None = None
    held: Held = Held.ANSWER
    timeout_ms: float = 0.0

    @property
    def decides(self) -> bool:
        """Tell whether it is more than a wait: of several rules, the first that decides has its way."""
        return self.error is not None or self.drop is not None or self.cuts

    @property
    def is_over(self) -> bool:
        """Tell whether it does nothing any more: it is a barrier alone, which stands open."""
        is_met = self.until is not None and self.until.is_met
        return is_met and not (self.decides or self.delay_ms or self.hold_ms)

    def __str__(self) -> str:
        said = []
        if self.delay_ms:
            said.append(f"delayed by {self.delay_ms:g} ms")
        if self.until is not None:
            said.append(f"{self.held} held until {self.until}")
        if self.error is not None:
            said.append(f"{self.error.name} {self.when} it is carried out")
        if self.hold_ms:
            said.append(f"answer held for {self.hold_ms:g} ms")
        if self.drop is not None:
            said.append(f"dropped {self.drop} it is carried out")
        if self.cuts:
            said.append("answer cut")
        return ", ".join(said)


class CountedRule:
    """A rule and what it counts. name: for people, and of its chance. seed: the plan's, asked for at each draw."""

    def __init__(self, name: str, pick: Pick, seed: Callable[[], int]) -> None:
        self.name = name
        self.fitted = 0
        """How many were meant."""
        self.taken = 0
        """To how many of them it was done."""
        self.timed_out = 0
        """How many waits were over before what they waited for."""
        self.when_taken: deque[Callable[[], None]] = deque()
        """Are called once, when it is done the next time; by any thread."""
        self._pick = pick
        self._seed = seed

    @property
    def is_over(self) -> bool:
        """Tell whether it picks nothing any more."""
        return self._pick.is_over(self.fitted, self.taken)

    def picks(self) -> bool:
        """Count one that is meant, and tell whether it is picked."""
        self.fitted += 1
        return self._pick.takes(self.fitted, self.taken, f"{self._seed()}/{self.name}")

    def take(self) -> None:
        """Count one to which it is done."""
        self.taken += 1
        while self.when_taken:
            self.when_taken.popleft()()


class Rule(CountedRule):
    """A rule of a plan."""

    def __init__(self, name: str, match: Match, pick: Pick, action: Action, seed: Callable[[], int]) -> None:
        super().__init__(name, pick, seed)
        self.match = match
        self.action = action
        self.is_removed = False
        """It picks nothing any more, and waits for nothing."""

    def as_json(self) -> dict[str, Any]:
        match, condition = self.match, self.action.until
        values = {
            "name": self.name,
            "api": None if match.api_key is None else api_name(match.api_key),
            "client_id": None if match.client_id is None else match.client_id.text,
            "topic": None if match.topic is None else match.topic.text,
            "does": str(self.action),
            "fitted": self.fitted,
            "taken": self.taken,
            "timed_out": self.timed_out,
            "is_met": None if condition is None else condition.is_met,
        }
        return {name: value for name, value in values.items() if value is not None}
