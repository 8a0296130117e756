"""The confirmation by batches that segments are as old as their indexes say: no wrong index makes retention delete.

A start takes the index's word. Before retention deletes for the first time, what is about to go is read, in a thread;
what is found there is taken over afterwards, where the log still has those segments.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..segments.segment import LogSegment, Unconfirmed
from .log_segments import LogSegments
from .log_state import LogState


class TimestampConfirmation:
    """One look at `due`, the log's oldest segments, whose time indexes say that they are older than `least_ms`."""

    def __init__(self, log: LogState, segments: LogSegments, due: Sequence[LogSegment], least_ms: int) -> None:
        self._log = log
        self._segments = segments
        self._truncations = log.truncations
        self._least_ms = least_ms
        self._asked = [(each, each.unconfirmed) for each in due]
        self._found: list[tuple[LogSegment, Unconfirmed, tuple[int, int]]] = []

    def read(self) -> None:
        """Read the batches, in a thread.

        Raises as reads do, where the files are not what they were, too: see `is_overtaken`.
        """
        for segment, unconfirmed in self._asked:
            if unconfirmed is None:
                continue
            found = segment.find_max_timestamp(unconfirmed)
            self._found.append((segment, unconfirmed, found))
            if found[0] >= self._least_ms:
                return  # what is behind it stays, too

    @property
    def is_overtaken(self) -> bool:
        """The log was closed, truncated or compacted meanwhile: what was read, or could not be, says nothing of it."""
        log = self._log
        if log.is_closed or log.is_being_truncated or log.truncations != self._truncations:
            return True
        present = set(map(id, self._segments.all))
        return any(id(segment) not in present for segment, _ in self._asked)

    def apply(self) -> None:
        """Apply what was found, where that is not overtaken."""
        for segment, unconfirmed, found in self._found:
            segment.confirm(unconfirmed, found)
