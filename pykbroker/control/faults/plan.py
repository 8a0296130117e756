"""The faults that are planned for a broker's clients: rules, in the order in which they were added; the first that picks a
request decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from pykbroker.protocol.framing import RequestHeader

from .rule import Action, Match, Pick, Rule

Topics = Callable[[], frozenset[str]]


class FaultPlan:
    """A plan. seed: of its chances."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._rules: list[Rule] = []
        self._numbers = count(1)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def add(self, match: Match, pick: Pick, action: Action, name: str = "") -> Rule:
        rule = Rule(name or f"fault {next(self._numbers)}", match, pick, action, self.seed)
        self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Take a rule out; it may be gone already."""
        if rule in self._rules:
            self._rules.remove(rule)

    def clear(self) -> None:
        self._rules.clear()

    def choose(self, header: RequestHeader, topics: Topics) -> Rule | None:
        """Count a request, and return the rule that picks it. topics: asked for only where a rule needs them.

        Every rule that means the request counts it, so that adding one rule does not change what another one does.
        """
        chosen: Rule | None = None
        named: frozenset[str] | None = None
        for rule in self._rules:
            if not rule.match.fits_header(header.api_key, header.client_id):
                continue
            if named is None:
                named = topics() if any(each.match.topic is not None for each in self._rules) else frozenset()
            if rule.takes(named) and chosen is None:
                chosen = rule
        return chosen
