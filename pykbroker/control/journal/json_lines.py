"""A journal as JSON lines: a head, one line for each entry, and an end, without which it was cut.

The head says how many entries had been forgotten. An exchange and an event have the fields of `decoding`, and the
number of their point; lines of the kind `ends` say where logs ended at the head's point, and at which later ones they
ended elsewhere than before (`points`). A journal of several nodes has no points.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from pykbroker.protocol.topic_partition import TopicPartition

from .decoding import entry_values
from .journal import Journal
from .points import Change, History, InvalidPoints, LogEnd, ends_values, read_ends
from .query import Wanted, entries_of, forgotten
from .recorded_request import RecordedRequest

FORMAT: Final = 1
MOST_LINE_CHARACTERS: Final = 64 * 1024 * 1024
"""Of a file that is read back."""
MOST_ENDS: Final = 1_000
"""Of one line: what makes it does not let go of Python's lock."""


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
    }
    yield _line(head)
    changes = 0
    for change in (Change(history.base_point, history.base), *history.changes):
        ends = iter(change.ends.items())
        while some := dict(islice(ends, MOST_ENDS)):
            yield _line({"kind": "ends", "point": change.point, "ends": ends_values(some)})
            changes += 1
    count = 0
    for entry, journal in entries_of(journals, since):
        values = entry_values(entry, journal.topic_names)
        if 0 < entry.point <= history.latest:
            values["point"] = entry.point
        yield _line(values)
        count += 1
    yield _line({"kind": "end", "entries": count, "changes": changes})


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
            if line["kind"] != "exchange":
                continue
            request = RecordedRequest(line)
            if wanted.has_api(request.api) and wanted.is_of(request.client_id) and wanted.is_met_by(request):
                found.append(request)
        return found


def read_journal(path: str | Path, on_line: Callable[[int], None] | None = None) -> ReadJournal:
    """Read a journal back. Raises JournalFileError for what is none, and JournalCut, which has what there is of it, for
    one that ends too early.

    on_line: called with the number of characters of each line.
    """
    path = Path(path)
    journal = ReadJournal()
    changes: list[Change] = []
    number = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        while line := file.readline(MOST_LINE_CHARACTERS):
            number += 1
            if on_line is not None:
                on_line(len(line))
            values = _values(line)
            if values is None:
                if number == 1:
                    raise _no_journal(path)
                if not line.endswith("\n") and not file.read(1):
                    raise _cut(path, f"line {number} is cut", journal)
                raise JournalFileError(f"{path}: line {number} is no line of a journal")
            if (number == 1) != (values["kind"] == "journal"):
                raise (
                    _no_journal(path) if number == 1 else JournalFileError(f"{path}: line {number} begins another one")
                )
            match values["kind"]:
                case "journal":
                    _begin(path, values, journal, changes)
                case "ends":
                    if values["point"] < (changes[-1].point if changes else journal.history.base_point):
                        raise JournalFileError(f"{path}: line {number} goes back to a point in front of the last one")
                    changes.append(Change(values["point"], _ends(path, number, values["ends"])))
                case "end":
                    _check_end(path, values, journal)
                    if file.read(1):
                        raise JournalFileError(f"{path}: behind its end, line {number}, there is more")
                    return journal
                case _:
                    journal.lines.append(values)
    if not number:
        raise JournalFileError(f"{path} is empty")
    raise _cut(path, f"nothing follows line {number}, and the end is missing", journal)


def _begin(path: Path, head: dict[str, Any], journal: ReadJournal, changes: list[Change]) -> None:
    """Read the head. changes: has those of the lines that follow, once they were read."""
    if head["format"] != FORMAT:
        raise JournalFileError(f"{path} has the format {head['format']} of journals; this version reads {FORMAT}")
    expected = (("forgotten", int), ("nodes", list), ("cluster_id", str), ("point", int))
    if not all(isinstance(head.get(name), type_) for name, type_ in expected):
        raise _no_journal(path)
    journal.forgotten, journal.nodes, journal.cluster_id = head["forgotten"], head["nodes"], head["cluster_id"]
    journal.history = History(head["point"], changes=changes)


def _no_journal(path: Path) -> JournalFileError:
    return JournalFileError(f"{path} is no journal of pykbroker: line 1 is none of its lines")


def _ends(path: Path, number: int, values: Any) -> dict[TopicPartition, LogEnd | None]:
    try:
        return read_ends(values)
    except InvalidPoints as error:
        raise JournalFileError(f"{path}: line {number}: {error}") from None


def _check_end(path: Path, end: dict[str, Any], journal: ReadJournal) -> None:
    there, written = len(journal.lines), end["entries"]
    if there != written:
        raise _cut(path, f"{there} entries are there, and {written} were written", journal)
    there, written = len(journal.history.changes), end["changes"]
    if there != written:
        raise _cut(path, f"{there} lines with ends of logs are there, and {written} were written", journal)


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
    if not isinstance(kind, str) or kind not in _NEEDED or not line.endswith("\n"):
        return None
    are_there = all(isinstance(values.get(name), type_) for name, type_ in _NEEDED[kind].items())
    optional = _OPTIONAL.get(kind, {})
    are_right = all(isinstance(values[name], type_) for name, type_ in optional.items() if name in values)
    return values if are_there and are_right and all(0 <= values.get(name, 0) <= _MOST_MS for name in _TIMES) else None


_TIMES: Final = ("received_ms", "took_ms", "at_ms")
_MOST_MS: Final = 1 << 47
"""A time that a calendar has, in whatever zone."""
_NUMBER: Final = (int, float)
_Types: TypeAlias = Mapping[str, Mapping[str, type | tuple[type, ...]]]
_NEEDED: Final[_Types] = {
    "journal": {"format": int},
    "end": {"entries": int, "changes": int},
    "ends": {"point": int, "ends": dict},
    "event": {"number": int, "node": int, "at_ms": _NUMBER, "whose": str, "text": str},
    "exchange": {
        "number": int,
        "node": int,
        "api": str,
        "version": int,
        "principal": str,
        "connection": int,
        "correlation_id": int,
        "received_ms": _NUMBER,
        "outcome": str,
        "request": dict,
    },
}
_OPTIONAL: Final[_Types] = {
    "event": {"caused_by": int, "point": int},
    "exchange": {
        "client_id": str,
        "took_ms": _NUMBER,
        "caused_by": int,
        "reason": str,
        "interference": list,
        "response": dict,
        "point": int,
    },
}


def _line(values: dict[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":")) + "\n"
