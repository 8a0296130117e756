"""The advanced time of one scope: everything that is there at an advance is older by so much from then on.

What comes later is as old as it is: its timestamp is the clock's, and only later advances let it age. So a broker goes
on as usual behind an advance of a week, and keeps what it is given then for as long as it would.

A rule compares timestamps with a limit: what was stamped before `now - limit` is over. The advances since a timestamp
move it further back; the earlier it is, the more of them there are. So what is over ends at one timestamp, for each
limit, and `reckon` gives the time at which a rule that knows nothing of all this finds just that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

MOST_ADVANCES: Final = 1000
"""Kept one by one; of more, the oldest become one."""


class AdvancedTime:
    """The advances of a scope: when each was, and by how much."""

    def __init__(self, advances: Sequence[tuple[int, int]] = ()) -> None:
        self._advances = sorted(advances)
        self._older: list[tuple[int, int]] = []
        """Up to which timestamp things are older by how much in all."""
        self.total_ms = 0
        self._add_up()

    @property
    def advances(self) -> Sequence[tuple[int, int]]:
        """Return when each advance was, and by how much."""
        return list(self._advances)

    def advance(self, by_ms: int, now_ms: int) -> None:
        """Let what has a timestamp before `now_ms` age by so much."""
        if self._advances:
            now_ms = max(now_ms, self._advances[-1][0])
        self._advances.append((now_ms, by_ms))
        self._add_up()

    def _add_up(self) -> None:
        while len(self._advances) > MOST_ADVANCES:
            (_, first_ms), (at_ms, second_ms) = self._advances[:2]
            self._advances[:2] = [(at_ms, first_ms + second_ms)]
        self.total_ms = left_ms = sum(by_ms for _, by_ms in self._advances)
        self._older = []
        for at_ms, advance_ms in self._advances:
            self._older.append((at_ms, left_ms))
            left_ms -= advance_ms

    def reckon(self, now_ms: int, limit_ms: int) -> int:
        """Return the time by which a rule with the limit finds what is over (`pykbroker.reckoning`)."""
        older, latest_ms = self._older, now_ms - limit_ms
        # The later the timestamp, the less has it aged: one place is the last that is over.
        place = bisect_left(older, latest_ms, key=lambda entry: entry[0] - entry[1])
        found_ms = latest_ms + older[place][1] if place < len(older) else latest_ms
        if place:
            found_ms = max(found_ms, older[place - 1][0])
        return max(found_ms, latest_ms) + limit_ms

    def ahead_ms(self) -> int:
        """Return by how much a clock is ahead that counts the advances of all time."""
        return self.total_ms
