"""The faults that are planned for a node's clients: rules, in the order in which they were added.

Every rule counts each request that it means, so that adding one rule does not change which requests another one picks.
Of the rules that pick a request all those that make it wait are carried out, and the first that does more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from pykbroker.protocol.api_keys import api_name
from pykbroker.protocol.framing import RequestHeader

from .condition import Happened, Happening, Released
from .errors import BadFault, suggestion
from .match import Match
from .rule import Action, Pick, Rule

MOST_RULES: Final = 1000
MOST_TAKEN: Final = 10_000
_MOST_KNOWN: Final = 256
_LONGEST_CLIENT_ID: Final = 250
"""Of what is remembered."""


class Taken(NamedTuple):
    """One fault that came about. number: counts the requests that the rule meant. does: what was done."""

    rule: str
    number: int
    api: str
    client_id: str | None
    does: str

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


class Concerned(NamedTuple):
    """The rules and the conditions that mean requests with a header, whatever topics these name."""

    rules: Sequence[Rule]
    conditions: Sequence[Happened]

    @property
    def asks_for_topics(self) -> bool:
        return any(match.topic is not None for match in self.matches)

    @property
    def matches(self) -> list[Match]:
        """The matches of the rules, and behind them those of the conditions."""
        return [*(each.match for each in self.rules), *(each.match for each in self.conditions)]


class FaultPlan:
    """A plan. seed: of its chances.

    taken: what was done, in its order; the latest `MOST_TAKEN`.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.taken: deque[Taken] = deque(maxlen=MOST_TAKEN)
        self._rules: dict[str, Rule] = {}
        self._concerned: dict[tuple[int, str | None], Concerned] = {}

    @property
    def is_empty(self) -> bool:
        return not self._rules

    def __iter__(self) -> Iterator[Rule]:
        return iter(list(self._rules.values()))

    def __contains__(self, name: str) -> bool:
        return name in self._rules

    def add(self, match: Match, pick: Pick, action: Action, name: str) -> Rule:
        """Add a rule with a name that no other has. Raises BadFault where there are too many."""
        if len(self._rules) >= MOST_RULES:
            raise BadFault(f"there are {MOST_RULES} faults already; remove some, or clear() them")
        rule = self._rules[name] = Rule(name, match, pick, action, lambda: self.seed)
        self._concerned.clear()
        return rule

    def remove(self, rule: Rule) -> None:
        """Take a rule out, which may be gone already."""
        if self._rules.get(rule.name) is rule:
            del self._rules[rule.name]
            self._concerned.clear()
            rule.is_removed = True

    def clear(self) -> None:
        """Take all rules out, and forget what they did."""
        for rule in self:
            self.remove(rule)
        self.taken.clear()

    def release(self, name: str) -> int:
        """Let go what waits for this name, now and later. Return how many rules do. Raises BadFault."""
        waiting = [each for each in self._conditions(Released) if each.name == name]
        if not waiting:
            names = {each.name for each in self._conditions(Released)}
            raise BadFault(f"no fault holds until '{name}' is released{suggestion(name, names)}")
        for condition in waiting:
            condition.meet()
        return len(waiting)

    def concerned(self, header: RequestHeader) -> Concerned:
        """Return what means requests with such a header."""
        key = header.api_key, header.client_id
        found = self._concerned.get(key)
        if found is None:
            if len(self._concerned) >= _MOST_KNOWN:
                self._concerned.clear()
            fits = Match.fits_header
            found = self._concerned[key] = Concerned(
                [rule for rule in self._rules.values() if fits(rule.match, *key)],
                [each for each in self._conditions(Happened) if fits(each.match, *key)],
            )
        return found

    def choose(self, rules: Sequence[Rule], header: RequestHeader) -> list[Rule]:
        """Count a request for the rules that mean it, and return those that are carried out."""
        chosen: list[Rule] = []
        is_decided = False
        for rule in rules:
            decides = rule.action.decides
            if rule.is_removed:  # while the request was read
                continue
            if not rule.picks() or (decides and is_decided):
                continue
            if rule.action.is_over:
                continue
            is_decided |= decides
            rule.take()
            client_id = None if header.client_id is None else header.client_id[:_LONGEST_CLIENT_ID]
            self.taken.append(Taken(rule.name, rule.fitted, api_name(header.api_key), client_id, str(rule.action)))
            chosen.append(rule)
        return chosen

    def _conditions(self, kind: type[Any]) -> list[Any]:
        return [rule.action.until for rule in self._rules.values() if isinstance(rule.action.until, kind)]


def note(conditions: Sequence[Happened], happening: Happening) -> None:
    """Tell conditions of a request that they mean."""
    for condition in conditions:
        if condition.happening is happening:
            condition.note()
