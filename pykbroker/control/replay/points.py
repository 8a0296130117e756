"""The entry of a journal that is meant, and what its point has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pykbroker.control.journal.exchange import Event
from pykbroker.control.journal.journal import Journal
from pykbroker.control.journal.points import METADATA, History, LogEnd, PointGone
from pykbroker.protocol.topic_partition import TopicPartition

from .errors import PointLost


@dataclass(frozen=True, slots=True)
class Point:
    """The point at which the entry `number` had ended. logs: as they were. lowest_ends: how far those come at the
    least that have lost their ends later, by a crash. compacted: how far those were by then that were compacted later.
    """

    number: int
    logs: dict[TopicPartition, LogEnd]
    lowest_ends: dict[TopicPartition, int]
    compacted: dict[TopicPartition, int]

    @classmethod
    def of(cls, number: int, point: int, history: History) -> Point:
        """Raises PointLost."""
        if not point:
            raise PointLost(f"#{number} had not ended yet: there is no state behind it")
        try:
            logs = history.at(point)
        except PointGone:
            raise PointLost(f"the journal has forgotten the state behind #{number}, among the oldest entries") from None
        if METADATA not in logs:
            raise PointLost(f"the journal does not tell the state behind #{number}: the broker did not serve yet")
        latest = {at: end.end_offset for at, end in logs.items()}
        lowest: dict[TopicPartition, int] = {}
        compacted: dict[TopicPartition, int] = {}
        for at, end in history.behind(point):
            then = logs.get(at)
            if end is None or then is None or end.topic_id != then.topic_id:
                continue
            if end.end_offset < latest[at]:
                lowest[at] = min(end.end_offset, lowest.get(at, end.end_offset))
            latest[at] = end.end_offset
            if end.cleanings > then.cleanings:
                compacted[at] = end.cleaned_offset
        return cls(number, logs, lowest, compacted)


def point_of(journal: Journal | None, number: int) -> Point:
    """Return the point behind an entry of a journal. Raises PointLost."""
    if journal is None:
        raise PointLost("there is no journal that would tell what the state was")
    journal.points.next(journal.look())  # what was changed since the latest entry ended
    kept = journal.entries()
    entries = {entry.number: entry.point for entry in kept}
    causes = {entry.number: entry.caused_by for entry in kept if isinstance(entry, Event)}
    return find_point(number, entries, causes, journal.points.history(), journal.last_number)


def find_point(
    number: int, points: Mapping[int, int], causes: Mapping[int, int], history: History, last_number: int
) -> Point:
    """Return the point behind the entry `number`. points: by entries, 0 for those that have not ended. causes: the
    requests that have set off events. Raises PointLost.

    An event is told before its records are written: behind it is what was there when its request had ended.
    """
    if number not in points:
        numbers = f"it has #{min(points)} to #{max(points)}" if points else "it is empty"
        what = "forgotten" if 0 < number <= last_number else "no"
        raise PointLost(f"the journal has {what} #{number}: {numbers}")
    cause = causes.get(number, 0)
    if not cause:
        return Point.of(number, points[number], history)
    if cause not in points:
        raise PointLost(f"the journal has forgotten #{cause}, the request that has set off #{number}")
    return Point.of(cause, points[cause], history)
