"""The error for a fault that cannot be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class BadFault(ValueError):
    """A fault that cannot be; the message is one line for people. option: the one that is wrong, "" for all of it."""

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return what may be meant, to stand behind a message; "" where nothing is close."""
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(name.lower()[:250], by_lower, n=1)
    return f" (did you mean {by_lower[close[0]]}?)" if close else ""
