"""A rate of records, by a clock that no sleep moves: what is late is made up for, up to a limit."""

from __future__ import annotations

import trio

MOST_BEHIND_S = 1.0


class Pace:
    """The pace of one stream of records: number n is due n / rate behind the beginning.

    records_per_s: above 0. most_behind_s: how much of a stall is made up for; all of it, where it is infinite.
    """

    def __init__(self, records_per_s: float, *, most_behind_s: float = MOST_BEHIND_S) -> None:
        self._per_s = records_per_s
        self._most_behind_s = most_behind_s
        self._began = trio.current_time()
        self._number = 0

    async def wait(self) -> None:
        """Return when the next record is due."""
        now = trio.current_time()
        due = self._began + self._number / self._per_s
        if due < now - self._most_behind_s:
            self._began, self._number = now - self._most_behind_s, 0
        elif due > now:
            await trio.sleep_until(due)
        self._number += 1
