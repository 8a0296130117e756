"""Offsets that each client was sent, by what it asked for and what it got."""

from __future__ import annotations

from typing import Final

from .offset_ranges import OffsetRanges
from .remembered import Remembered
from .who import Place, Who

MOST_POSITIONS: Final = 50_000
MOST_RANGES_KEPT: Final = 20_000
MOST_CLIENTS: Final = 5_000


class Fetches:
    """Fetches of all clients since the audit began.

    A client that was there before may have fetched what nobody saw: all below its first fetch counts as fetched.
    """

    def __init__(self) -> None:
        self._positions: Remembered[tuple[int, Place], int] = Remembered(MOST_POSITIONS)
        """By connection: in a fetch session a partition whose position stays is not named again."""
        self._fetched: Remembered[tuple[Who, Place], OffsetRanges] = Remembered(MOST_RANGES_KEPT)
        self._newcomers: Remembered[Who, bool] = Remembered(MOST_CLIENTS)
        self._log_starts: Remembered[Place, int] = Remembered(MOST_RANGES_KEPT)

    def came(self, who: Who) -> None:
        """Note that a client opens a connection, with ApiVersions."""
        self._newcomers.get_or(who, lambda: True)

    def was_there(self, who: Who) -> None:
        """Note any other request: a client that has not opened a connection yet was there before."""
        self._newcomers.get_or(who, lambda: False)

    def asked(self, connection: int, place: Place, offset: int) -> None:
        self._positions.put((connection, place), offset)

    def got(self, connection: int, who: Who, place: Place, end: int | None, log_start: int) -> None:
        """Note an answer. end: the offset behind its last batch; None where it has none."""
        if log_start >= 0:
            self._log_starts.put(place, log_start)
        position = self._positions.get((connection, place))
        if position is None or end is None:
            return
        ranges = self._fetched.get((who, place))
        if ranges is None:
            ranges = OffsetRanges()
            self._fetched.put((who, place), ranges)
            if not self._newcomers.get(who):
                ranges.add(0, position)
        ranges.add(position, end)

    def first_missing(self, who: Who, place: Place, first: int, end: int) -> tuple[int, int] | None:
        """Return the first offsets in `[first, end)` that the client was never sent.

        None where it has all, and where the audit cannot know: of a client that was there before, and of one that has
        fetched nothing of the partition, such as a tool that resets offsets.
        """
        ranges = self._fetched.get((who, place))
        return None if ranges is None else ranges.first_missing(first, end)

    def log_start(self, place: Place) -> int:
        """Return the log start offset that was told last; -1 where none was."""
        start = self._log_starts.get(place)
        return -1 if start is None else start
