"""A rate of records, by a clock that no sleep moves: up to one second's worth that is late is made up for."""

from __future__ import annotations

import trio

MOST_BEHIND_S = 1.0


class Pace:
    """The pace of one stream of records. records_per_s: above 0."""

    def __init__(self, records_per_s: float) -> None:
        self._interval_s = 1 / records_per_s
        self._due = trio.current_time()

    async def wait(self) -> None:
        """Return when the next record is due."""
        now = trio.current_time()
        self._due = max(self._due, now - MOST_BEHIND_S)
        if self._due > now:
            await trio.sleep_until(self._due)
        self._due += self._interval_s
