"""The condition of a barrier: what has to happen before what it keeps back goes on.

It counts from the moment at which the rule is made, and once met it stays so: what comes later is not held, since the
order is right by then.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from pykbroker.protocol.api_keys import api_name

from .match import Match


class Happening(StrEnum):
    """The part of a request's way that is waited for."""

    SEEN = "seen"
    """It has come."""
    ANSWERED = "answered"
    """Its answer goes out."""


class Condition:
    """A condition: so many requests were seen or answered, or somebody has released its name."""

    def __init__(self) -> None:
        self.is_met = False
        self.when_met: list[Callable[[], None]] = []

    def meet(self) -> None:
        self.is_met = True
        met, self.when_met = self.when_met, []
        for tell in met:
            tell()


class Released(Condition):
    """An event of the test's own, by its name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __str__(self) -> str:
        return f"'{self.name}' is released"


class Happened(Condition):
    """Requests that are meant: `times` of them."""

    def __init__(self, match: Match, happening: Happening, times: int = 1) -> None:
        super().__init__()
        self.match = match
        self.happening = happening
        self._missing = times
        self._times = times

    def note(self) -> None:
        """Note one of them."""
        self._missing -= 1
        if self._missing <= 0 and not self.is_met:
            self.meet()

    def __str__(self) -> str:
        match = self.match
        what = "a request" if match.api_key is None else api_name(match.api_key)
        of_client = "" if match.client_id is None else f" of {match.client_id.text}"
        of_topic = "" if match.topic is None else f" for {match.topic.text}"
        often = f" {self._times} times" if self._times > 1 else ""
        return f"{what}{of_client}{of_topic} is {self.happening}{often}"
