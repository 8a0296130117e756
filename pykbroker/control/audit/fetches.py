"""Offsets that each client was sent, by what it asked for and what it got."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from .offset_ranges import OffsetRanges
from .remembered import Remembered
from .who import Place, Who

MOST_POSITIONS: Final = 50_000
MOST_RANGES_KEPT: Final = 20_000
MOST_CLIENTS: Final = 5_000
MOST_CONNECTIONS: Final = 20_000


@dataclass(slots=True)
class _Sent:
    """The offsets that a client was sent. counts_below: what is below its first fetch counts as sent."""

    ranges: OffsetRanges = field(default_factory=OffsetRanges)
    counts_below: bool = False


class Fetches:
    """Fetches of all clients since the audit began.

    A client that was there before may have fetched what nobody saw: all below its first fetch counts as fetched. So it
    does where something was forgotten.
    """

    def __init__(self) -> None:
        self._positions: Remembered[tuple[int, Place], int] = Remembered(MOST_POSITIONS)
        """By connection: in a fetch session a partition whose position stays is not named again."""
        self._sent: Remembered[tuple[Who, Place], _Sent] = Remembered(MOST_RANGES_KEPT)
        self._opened: Remembered[int, bool] = Remembered(MOST_CONNECTIONS)
        """By connection: whether the audit has seen it from its first request on."""
        self._newcomers: Remembered[Who, bool] = Remembered(MOST_CLIENTS)
        """Whether the audit has seen all of the client's connections so."""
        self._log_starts: Remembered[Place, int] = Remembered(MOST_RANGES_KEPT)
        self._out_of_range: Remembered[tuple[Who, Place], bool] = Remembered(MOST_RANGES_KEPT)

    def came(self, connection: int, who: Who) -> None:
        """Note that a client opens a connection, with ApiVersions."""
        self._opened.get_or(connection, lambda: True)
        self._newcomers.get_or(who, lambda: True)

    def was_there(self, connection: int, who: Who) -> None:
        """Note any other request: a connection that has not begun yet was there before, and its client with it."""
        if not self._opened.get_or(connection, lambda: False):
            self._newcomers.put(who, False)

    def asked(self, connection: int, place: Place, offset: int) -> None:
        self._positions.put((connection, place), offset)

    def got(self, connection: int, who: Who, place: Place, end: int | None, log_start: int) -> None:
        """Note an answer. end: the offset behind its last batch; None where it has none."""
        if log_start >= 0:
            self._log_starts.put(place, log_start)
        if end is None:
            return
        position = self._positions.get((connection, place))
        sent = self._sent.get_or((who, place), _Sent)
        if position is None or not (sent.counts_below or self._is_known_from_the_start(who)):
            sent.counts_below = True
            sent.ranges.add(0, end if position is None else position)
        if position is not None:
            sent.ranges.add(position, end)

    def was_out_of_range(self, who: Who, place: Place) -> None:
        """Note that a client has to begin elsewhere: the log does not have what it asked for, or not any more."""
        self._out_of_range.put((who, place), True)

    def take_out_of_range(self, who: Who, place: Place) -> bool:
        """Tell whether the client had to begin elsewhere since the last call."""
        return bool(self._out_of_range.forget((who, place)))

    def first_missing(self, who: Who, place: Place, first: int, end: int) -> tuple[int, int] | None:
        """Return the first offsets in `[first, end)` that the client was never sent.

        None where it has all, and where the audit cannot know: of a client that was there before, and of one that has
        fetched nothing of the partition, such as a tool that resets offsets.
        """
        sent = self._sent.get((who, place))
        if sent is None or not (sent.counts_below or self._is_known_from_the_start(who)):
            return None
        return sent.ranges.first_missing(first, end)

    def log_start(self, place: Place) -> int:
        """Return the log start offset that was told last; -1 where none was."""
        start = self._log_starts.get(place)
        return -1 if start is None else start

    def _is_known_from_the_start(self, who: Who) -> bool:
        return bool(self._newcomers.get(who)) and not self._sent.has_forgotten
