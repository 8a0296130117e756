"""The clocks of one node: what time it is for retention, for transactions, for sessions, each by itself.

They outlive the node's starts. Timestamps that are written or told stay the clock's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final, TypeAlias

from pykbroker.server.runtime.time_scopes import TimeScopes

from .advanced_time import AdvancedTime

SCOPES: Final = ("retention", "tombstones", "transactions", "producers", "offsets", "tokens", "sessions")
ALL: Final = "all"
Advances: TypeAlias = Mapping[str, Sequence[tuple[int, int]]]
"""The advances of scopes: when each was, and by how many milliseconds."""


class UnknownScope(ValueError):
    """No clock has this name."""


def scopes_of(name: str) -> Sequence[str]:
    """Return the scopes that a name stands for, one or all. Raises UnknownScope."""
    if name == ALL:
        return SCOPES
    if name in SCOPES:
        return (name,)
    names = (*SCOPES, ALL)
    shown = ascii(str(name)[:64])[1:-1]
    close = get_close_matches(str(name)[:64], names, n=1)
    raise UnknownScope(f"there is no scope {shown}; " + (f"did you mean {close[0]}?" if close else f"{_listed(names)}"))


def _listed(names: Sequence[str]) -> str:
    return f"there are {', '.join(names[:-1])} and {names[-1]}"


class Clocks:
    """The clocks of a node, by scope. advances: what a node has had that this one goes on from."""

    def __init__(self, advances: Advances = MappingProxyType({})) -> None:
        self._times = {scope: AdvancedTime(advances.get(scope, ())) for scope in SCOPES}

    def scopes(self) -> TimeScopes:
        """Return the clocks as the node asks them."""
        times = self._times
        return TimeScopes(
            retention=times["retention"].reckon,
            tombstones=times["tombstones"].reckon,
            transactions=times["transactions"].reckon,
            producers=times["producers"].reckon,
            offsets=times["offsets"].reckon,
            tokens=times["tokens"].reckon,
            sessions_ahead_ms=times["sessions"].ahead_ms,
        )

    def advance(self, scopes: Sequence[str], by_ms: int, now_ms: int) -> None:
        """Advance the clocks of these scopes. now_ms: the wall clock; what has a later timestamp does not age."""
        for scope in scopes:
            self._times[scope].advance(by_ms, now_ms)

    def advances_until(self, at_ms: int) -> Advances:
        """Return the advances up to that time."""
        found = {scope: [each for each in time.advances if each[0] <= at_ms] for scope, time in self._times.items()}
        return {scope: advances for scope, advances in found.items() if advances}

    def advanced_ms(self, scope: str) -> int:
        """Return by how much the clock of one scope was advanced in all. Raises UnknownScope."""
        (scope,) = (*scopes_of(scope),) if scope != ALL else (_no_single(),)
        return self._times[scope].total_ms


def _no_single() -> str:
    raise UnknownScope(f"each scope has a clock of its own: ask for one of {', '.join(SCOPES)}")
