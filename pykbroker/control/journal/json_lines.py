"""A journal as JSON lines: a head, one line for each entry, and an end, without which it was cut.

The head says how many entries had been forgotten. An exchange and an event have the fields of `decoding`, and the
number of their point; lines of the kind `ends` say at which points logs ended elsewhere than before (`points`). A
journal of several nodes has no points.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pykbroker.protocol.topic_partition import TopicPartition

from .decoding import entry_values
from .journal import Journal
from .points import Change, History, InvalidPoints, LogEnd, ends_values, read_ends
from .query import Wanted, entries_of, forgotten
from .recorded_request import RecordedRequest

FORMAT: Final = 1
MOST_LINE_CHARACTERS: Final = 64 * 1024 * 1024
"""Of a file that is read back."""


class JournalFileError(ValueError):
    """The file is no journal; the message says why."""


class JournalCut(JournalFileError):
    """The file ends before the journal does. journal: what there is of it."""

    def __init__(self, message: str, journal: ReadJournal) -> None:
        super().__init__(message)
        self.journal = journal


def json_lines(journals: Iterable[Journal], since: int = 0) -> Iterator[str]:
    """The lines, each with its line feed."""
    journals = list(journals)
    history = journals[0].points.history() if len(journals) == 1 else History()
    head = {
        "kind": "journal",
        "format": FORMAT,
        "since": since,
        "forgotten": forgotten(journals, since),
        "nodes": [each.node_id for each in journals],
        "cluster_id": next((each.cluster_id for each in journals if each.cluster_id), ""),
        "point": history.base_point,
        "ends": ends_values(history.base),
    }
    yield _line(head)
    for change in history.changes:
        yield _line({"kind": "ends", "point": change.point, "ends": ends_values(change.ends)})
    count = 0
    for entry, journal in entries_of(journals, since):
        values = entry_values(entry, journal.topic_names)
        if 0 < entry.point <= history.latest:
            values["point"] = entry.point
        yield _line(values)
        count += 1
    yield _line({"kind": "end", "entries": count})


@dataclass(slots=True)
class ReadJournal:
    """A journal that was read from a file. forgotten: how many entries were not kept any more when it was written.

    nodes: whose it is. history: what the points of its lines mean.
    """

    forgotten: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)
    """Exchanges and events, in the order in which they began."""
    nodes: list[int] = field(default_factory=list)
    cluster_id: str = ""
    history: History = field(default_factory=History)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The acts of state machines."""
        return [line for line in self.lines if line["kind"] == "event"]

    def requests(
        self,
        api: str | None = None,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        error: str | None = None,
    ) -> list[RecordedRequest]:
        """Return the requests that fit all that is given. Raises UnknownApi, UnknownError."""
        wanted = Wanted.of(api, client_id, topic, error)
        found = []
        for line in self.lines:
            if line["kind"] != "exchange" or client_id not in (None, line.get("client_id")):
                continue
            request = RecordedRequest(line)
            if wanted.has_api(request.api) and wanted.is_met_by(request):
                found.append(request)
        return found


def read_journal(path: str | Path) -> ReadJournal:
    """Read a journal back. Raises JournalFileError for what is none, and JournalCut, which has what there is of it, for
    one that ends too early.
    """
    path = Path(path)
    journal = ReadJournal()
    changes: list[Change] = []
    number = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        while line := file.readline(MOST_LINE_CHARACTERS):
            number += 1
            values = _values(line)
            if values is None:
                if number == 1:
                    raise JournalFileError(f"{path} is no journal of pykbroker: line 1 is none of its lines")
                if not line.endswith("\n") and not file.read(1):
                    raise _cut(path, f"line {number} is cut", journal)
                raise JournalFileError(f"{path}: line {number} is no line of a journal")
            if number == 1:
                _begin(path, values, journal)
                journal.history = replace(journal.history, changes=changes)
            elif values["kind"] == "ends":
                changes.append(Change(values["point"], _ends(path, number, values["ends"])))
            elif values["kind"] == "end":
                _check_end(path, values, journal)
                return journal
            else:
                journal.lines.append(values)
    if not number:
        raise JournalFileError(f"{path} is empty")
    raise _cut(path, f"nothing follows line {number}, and the end is missing", journal)


def _begin(path: Path, head: dict[str, Any], journal: ReadJournal) -> None:
    if head["kind"] != "journal" or not isinstance(head.get("forgotten"), int):
        raise JournalFileError(f"{path} is no journal of pykbroker: line 1 is none of its lines")
    if head.get("format") != FORMAT:
        raise JournalFileError(f"{path} has the format {head.get('format')} of journals; this version reads {FORMAT}")
    journal.forgotten = head["forgotten"]
    nodes, point = head.get("nodes", []), head.get("point", 0)
    if not isinstance(nodes, list) or not isinstance(point, int):
        raise JournalFileError(f"{path} is no journal of pykbroker: line 1 is none of its lines")
    journal.nodes, journal.cluster_id = nodes, str(head.get("cluster_id", ""))
    base = _ends(path, 1, head.get("ends", {}))
    journal.history = History(point, {at: end for at, end in base.items() if end is not None})


def _ends(path: Path, number: int, values: Any) -> dict[TopicPartition, LogEnd | None]:
    try:
        return read_ends(values)
    except InvalidPoints as error:
        raise JournalFileError(f"{path}: line {number}: {error}") from None


def _check_end(path: Path, end: dict[str, Any], journal: ReadJournal) -> None:
    if end.get("entries") != len(journal.lines):
        message = f"{len(journal.lines)} entries are there, and {end.get('entries')} were written"
        raise _cut(path, message, journal)


def _cut(path: Path, what: str, journal: ReadJournal) -> JournalCut:
    count = len(journal.lines)
    return JournalCut(f"{path} was cut: {what}; {count} entries before that can be read", journal)


def _values(line: str) -> dict[str, Any] | None:
    """Return the values of a line; None where it is none of a journal."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    kind = values.get("kind") if isinstance(values, dict) else None
    needed = _NEEDED.get(kind) if isinstance(kind, str) else None
    if needed is None or not line.endswith("\n"):
        return None
    return values if all(isinstance(values.get(name), kind) for name, kind in needed.items()) else None


_NEEDED: Final[dict[str, dict[str, type | tuple[type, ...]]]] = {
    "journal": {},
    "end": {},
    "ends": {"point": int, "ends": dict},
    "event": {"number": int, "node": int, "text": str},
    "exchange": {
        "number": int,
        "node": int,
        "api": str,
        "version": int,
        "principal": str,
        "connection": int,
        "correlation_id": int,
        "received_ms": (int, float),
        "outcome": str,
        "request": dict,
    },
}


def _line(values: dict[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":")) + "\n"
