"""Records at a rate."""

from __future__ import annotations

import time
from collections.abc import Callable

_SHORTEST_PAUSE_S = 0.01


class Pace:
    """The moments at which records are due, evenly. rate: records a second."""

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._now = now
        self._begun = now()
        self._records = 0

    def pause_s(self) -> float:
        """The time that the next record has to wait; pauses that are too short to be kept are left for a later one."""
        self._records += 1
        pause_s = self._begun + self._records / self._rate - self._now()
        return pause_s if pause_s > _SHORTEST_PAUSE_S else 0.0
