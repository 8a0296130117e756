"""The screen of `pykbroker top`, as lines that fit: what is least needed goes first where the terminal is small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple

from rich.cells import set_cell_size
from rich.text import Text

from .listing import printable
from .top_rates import ClusterView, GroupRow, TopicRow
from .top_text import (
    Snapshot,
    broker_cells,
    bytes_text,
    counted,
    group_cells,
    log_dir_cells,
    rate_text,
    request_cells,
    topic_cells,
)

_GAP: Final = 2
_LEAST_NAME: Final = 12
_MOST_NAME: Final = 64
_MOST_PROBLEMS: Final = 4
_KEYS: Final = "q quit  r records/s  b bytes/s  s size  n name  up/down scroll"


class SortKey(Enum):
    """The column that topics are sorted by; the value is the key to press."""

    RECORDS = "r"
    BYTES = "b"
    SIZE = "s"
    NAME = "n"


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of the user. first: the topic that stands on top of the table."""

    sort: SortKey = SortKey.RECORDS
    first: int = 0

    def sorted_by(self, key: SortKey) -> Choice:
        return Choice(key)

    def scrolled(self, by: int, topics: int) -> Choice:
        return replace(self, first=max(0, min(self.first + by, topics - 1)))


class _Column(NamedTuple):
    """A column of a table; the first one takes the room that is left, and the last ones go where it is too narrow."""

    title: str
    width: int


_TOPICS: Final = (
    _Column("TOPIC", _LEAST_NAME),
    _Column("REC/S", 9),
    _Column("BYTES/S", 9),
    _Column("UNDER", 5),
    _Column("OFFLINE", 7),
    _Column("SIZE", 9),
    _Column("PARTS", 6),
)
_GROUPS: Final = (_Column("GROUP", _LEAST_NAME), _Column("LAG", 12), _Column("READ/S", 9), _Column("STATE", 20))
_DIRECTORIES: Final = (
    _Column("BROKER, LOG DIR", _LEAST_NAME),
    _Column("USED", 9),
    _Column("FREE", 9),
    _Column("TOTAL", 9),
)
_REQUESTS: Final = (_Column("REQUEST", _LEAST_NAME), _Column("PER S", 9), _Column("P50 MS", 9), _Column("P99 MS", 9))
_BROKERS: Final = (_Column("BROKER", _LEAST_NAME), _Column("LEADERS", 7), _Column("ROLE", 11))


def screen_lines(snapshot: Snapshot, choice: Choice, width: int, height: int, interval_s: float) -> list[Text]:
    """Return at most `height` lines of at most `width` cells."""
    if width < 1 or height < 1:
        return []
    lines = [*_head(snapshot, interval_s), *_problems(snapshot, height)]
    room = height - len(lines) - 1
    shares = _shares(snapshot, room)
    lines += _topics(snapshot.view, choice, shares["topics"], width)
    groups = sorted(snapshot.view.groups, key=lambda each: _group_order(each, choice.sort))
    lines += _table(_GROUPS, [[row[0], row[3], row[4], row[2]] for row in group_cells(groups)], shares["groups"], width)
    brokers = [[f"{row[0]} {row[1]}", row[2], row[3]] for row in broker_cells(snapshot.view)]
    lines += _table(_BROKERS, brokers, shares["brokers"], width)
    directories = [[f"{row[0]} {row[1]}", *row[2:]] for row in log_dir_cells(snapshot.view)]
    lines += _table(_DIRECTORIES, directories, shares["disks"], width)
    busy = sorted(snapshot.requests.rows, key=lambda each: -(each.per_s or 0.0))
    lines += _table(_REQUESTS, request_cells(replace(snapshot.requests, rows=tuple(busy))), shares["requests"], width)
    lines = [*lines[: height - 1], Text(_KEYS, style="dim")] if height > 1 else lines[:1]
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="crop")
    return lines


def _head(snapshot: Snapshot, interval_s: float) -> list[Text]:
    view = snapshot.view
    clock = snapshot.at.astimezone().strftime("%H:%M:%S")
    totals = Text.assemble(
        (f"{rate_text(view.records_per_s)} records/s", "bold"),
        f"  {bytes_text(view.bytes_per_s)}/s  ",
        (f"{view.under_replicated} under-replicated", "bold red" if view.under_replicated else "green"),
        "  ",
        (f"{view.offline} offline", "bold red" if view.offline else "green"),
        f"  {counted(len(view.topics), 'topic')}  {counted(view.partitions, 'partition')}",
    )
    controller = "?" if view.controller_id is None else str(view.controller_id)
    first = Text(f"{clock} every {interval_s:g} s  {counted(len(view.brokers), 'broker')}  controller {controller}  ")
    return [first.append(f"cluster {printable(view.cluster_id or '?')}", "dim"), totals]


def _problems(snapshot: Snapshot, height: int) -> list[Text]:
    most = min(_MOST_PROBLEMS, max(1, height // 6))
    found = snapshot.problems
    if len(found) > most:
        found = [*found[: most - 1], f"{len(found) - most + 1} more: see `pykbroker top --once`"]
    return [Text(f"! {each}", style="yellow") for each in found]


def _shares(snapshot: Snapshot, room: int) -> dict[str, int]:
    """Lines of each table with its title; topics get what the others leave, and a low screen shows topics alone."""
    counts = {
        "groups": len(snapshot.view.groups),
        "requests": len(snapshot.requests.rows),
        "disks": len(snapshot.view.log_dirs),
        "brokers": len(snapshot.view.brokers),
    }
    shares = dict.fromkeys(("topics", *counts), 0)
    left = room - min(len(snapshot.view.topics) + 1, max(6, room // 3))
    for name, count in counts.items():
        wanted = min(count + 1, max(3, room // 5)) if count else 0
        if wanted and left >= 2:
            shares[name] = min(wanted, left)
            left -= shares[name]
    shares["topics"] = max(0, room - sum(shares.values()))
    return shares


def _topics(view: ClusterView, choice: Choice, room: int, width: int) -> list[Text]:
    rows = sorted(view.topics, key=lambda each: _topic_order(each, choice.sort))
    shown = rows[min(choice.first, max(0, len(rows) - max(1, room - 1))) :][: max(0, room - 1)]
    cells = [
        [row[0], row[2], row[3], row[5], row[6], row[4], row[1]]
        for row in topic_cells(replace(view, topics=tuple(shown)))
    ]
    lines = _table(_TOPICS, cells, room, width)
    for line, row in zip(lines[1:], shown, strict=False):
        if row.offline or row.under_replicated:
            line.stylize("red")
    return lines


def _topic_order(topic: TopicRow, sort: SortKey) -> tuple[float, str]:
    match sort:
        case SortKey.NAME:
            return 0.0, topic.name
        case SortKey.SIZE:
            return -(topic.size_bytes or 0), topic.name
        case SortKey.BYTES:
            return -(topic.bytes_per_s or 0.0), topic.name
        case SortKey.RECORDS:
            return -(topic.records_per_s or 0.0), topic.name


def _group_order(group: GroupRow, sort: SortKey) -> tuple[int, str]:
    return (0 if sort is SortKey.NAME else -(group.lag or 0), group.name)


def _table(columns: Sequence[_Column], rows: Sequence[Sequence[str]], room: int, width: int) -> list[Text]:
    """A title and as many rows as there is room for."""
    if room < 2 or not rows:
        return []
    kept = [columns[0]]
    left = width - _LEAST_NAME
    for column in columns[1:]:
        if left < _GAP + column.width:
            break
        left -= _GAP + column.width
        kept.append(column)
    widths = [min(_LEAST_NAME + max(0, left), _MOST_NAME), *(column.width for column in kept[1:])]
    title = Text(_line([column.title for column in kept], widths), style="bold reverse")
    return [title, *(Text(_line(row[: len(kept)], widths)) for row in rows[: room - 1])]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = cells
    parts = [_fitted(first, widths[0])]
    for cell, width in zip(rest, widths[1:], strict=True):
        parts.append(" " * _GAP + _fitted(" " * (width - len(cell)) + cell, width))
    return "".join(parts)


def _fitted(text: str, width: int) -> str:
    fitted = set_cell_size(text, width)
    return fitted if len(fitted) >= len(text.rstrip()) or width < 2 else set_cell_size(text, width - 1) + "~"
