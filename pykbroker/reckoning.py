"""A reckoning says how late it is for what is due after a limit of time: by the clock, or later where somebody has let
time pass for it (`pykbroker.control.clocks`). What is compared with it are times that stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Reckoning: TypeAlias = Callable[[int, int], int]
"""Gives the time that a rule compares with, of the time by the clock and of the rule's limit, in milliseconds."""


def by_the_clock(now_ms: int, limit_ms: int) -> int:
    """Return the time as it is."""
    return now_ms
