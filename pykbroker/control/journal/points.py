"""The points of a journal: where the logs of its node ended when each entry did.

All state of a node is in its logs, so their ends are what it takes to have it again as it was (`control/replay`). An
entry has the number of its point; points are in the order in which entries end. Only what has changed since the point
before is kept, and what is in front of all kept entries is one state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from pykbroker.protocol.topic_partition import TopicPartition
from pykbroker.storage.directories.directory_names import METADATA_LOG_DIRECTORY, parse_partition_directory

METADATA: Final = TopicPartition(METADATA_LOG_DIRECTORY.removesuffix("-0"), 0)
CHANGE_BYTES: Final = 400
"""The memory that the end of one log takes, about."""
_MOST_OFFSET: Final = 1 << 63


class LogEnd(NamedTuple):
    """A log at a point: its topic, by the id as text, where it began and ended, how far and how often it had been
    compacted.
    """

    topic_id: str
    start_offset: int
    end_offset: int
    cleaned_offset: int
    cleanings: int = 0


Ends: TypeAlias = Mapping[TopicPartition, LogEnd | None]
"""Ends by log; None where a log is gone."""
NO_ENDS: Final[Ends] = MappingProxyType({})


class Change(NamedTuple):
    """A point at which logs were not what they had been at the point before."""

    point: int
    ends: Ends


class PointGone(ValueError):
    """The journal does not reach back to the point."""


class InvalidPoints(ValueError):
    """A line says nothing that could be the ends of logs."""


@dataclass(frozen=True, slots=True)
class History:
    """The state of all logs at the point `base_point`, and what has changed since, by points, up to `latest`."""

    base_point: int = 0
    base: Mapping[TopicPartition, LogEnd] = field(default_factory=dict)
    changes: Sequence[Change] = ()
    latest: int = 0

    def at(self, point: int) -> dict[TopicPartition, LogEnd]:
        """Return the logs at a point. Raises PointGone."""
        if point < self.base_point:
            raise PointGone
        state = dict(self.base)
        for change in self.changes:
            if change.point > point:
                break
            apply(change.ends, state)
        return state

    def behind(self, point: int) -> Iterator[tuple[TopicPartition, LogEnd | None]]:
        """The ends at later points, as far as they changed."""
        for change in self.changes:
            if change.point > point:
                yield from change.ends.items()


def apply(ends: Ends, state: dict[TopicPartition, LogEnd]) -> None:
    """Carry out in a state what has changed."""
    for at, end in ends.items():
        if end is None:
            state.pop(at, None)
        else:
            state[at] = end


class Points:
    """The points of one journal. One thread writes; others may ask for the history at the same time."""

    def __init__(self) -> None:
        self.latest = 0
        """The number of the latest point."""
        self._base: tuple[int, dict[TopicPartition, LogEnd]] = (0, {})
        self._changes: deque[Change] = deque()

    def next(self, ends: Ends) -> int:
        """Return the number of a new point. ends: what has changed since the one before."""
        point = self.latest + 1
        if ends:
            self._changes.append(Change(point, ends))
        self.latest = point  # last: whoever sees it finds the change, too
        return point

    def forget_before(self, point: int) -> None:
        """Forget what was in front of this point: nobody will ask for it."""
        changes = self._changes
        if not changes or changes[0].point > point:
            return
        state = dict(self._base[1])
        count = 0
        for change in changes:
            if change.point > point:
                break
            apply(change.ends, state)
            count += 1
        self._base = (point, state)  # first: changes that are in it may be carried out once more
        for _ in range(count):
            changes.popleft()

    def history(self) -> History:
        while True:
            base, latest = self._base, self.latest
            try:
                changes = list(self._changes)
            except RuntimeError:  # it has grown meanwhile, in another thread
                continue
            if base is self._base:
                return History(*base, [each for each in changes if base[0] < each.point <= latest], latest)


def ends_values(ends: Ends) -> dict[str, Any]:
    """Ends as a line of a journal has them."""
    return {str(at): None if end is None else list(end) for at, end in ends.items()}


def read_ends(values: Any) -> dict[TopicPartition, LogEnd | None]:
    """Read them back. Raises InvalidPoints."""
    if not isinstance(values, dict):
        raise InvalidPoints("ends of logs are no mapping")
    return {_partition(name): None if value is None else _end(name, value) for name, value in values.items()}


def _partition(name: str) -> TopicPartition:
    at = METADATA if name == METADATA_LOG_DIRECTORY else parse_partition_directory(name)
    if at is None:
        raise InvalidPoints(f"{name[:300]!a} is the name of no log")
    return at


def _end(name: str, value: Any) -> LogEnd:
    if isinstance(value, list) and len(value) == 5 and isinstance(value[0], str):
        offsets = value[1:]
        if all(type(each) is int and 0 <= each < _MOST_OFFSET for each in offsets) and value[1] <= value[2]:
            return LogEnd(value[0], *offsets)
    raise InvalidPoints(f"{name[:300]!a} has an end that no log has")
