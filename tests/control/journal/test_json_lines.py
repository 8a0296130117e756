from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from pykbroker.control.journal.journal import Journal
from pykbroker.control.journal.json_lines import MOST_ENDS, JournalCut, JournalFileError, json_lines, read_journal
from pykbroker.control.journal.points import METADATA, LogEnd, PointGone
from pykbroker.control.journal.query import UnknownApi
from pykbroker.protocol.topic_partition import TopicPartition

from .entries import batch, heartbeat, new_journal, record
from .test_decoding import produce


def written(tmp_path: Path, *journals: Journal, since: int = 0) -> Path:
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(json_lines(journals, since)))
    return path


def a_journal() -> Journal:
    journal = new_journal()
    heartbeat(journal, client_id="a")
    journal.note("__consumer_offsets-0", "group g rebalances: ünicode", 1)
    record(journal, produce(("orders", [batch("zwei Bücher".encode())])), None, 9, client_id="b")
    return journal


def test_what_is_written_is_read(tmp_path: Path) -> None:
    journal = read_journal(written(tmp_path, a_journal()))
    assert journal.forgotten == 0
    assert [(line["kind"], line["number"]) for line in journal.lines] == [
        ("exchange", 1),
        ("event", 2),
        ("exchange", 3),
    ]
    assert [each["text"] for each in journal.events] == ["group g rebalances: ünicode"]
    (request,) = journal.requests("Produce", topic="orders")
    assert (request.client_id, request.outcome, request.topics) == ("b", "no answer", {"orders"})
    records = request.request["topic_data"][0]["partition_data"][0]["records"][0]["records"]
    assert records[0]["value"] == "zwei Bücher"
    assert [each.number for each in journal.requests(client_id="a")] == [1]
    assert [each.number for each in journal.requests(error="NONE")] == [1]
    with pytest.raises(UnknownApi):
        journal.requests("Produced")


def test_only_what_is_behind_a_position_is_written(tmp_path: Path) -> None:
    assert [line["number"] for line in read_journal(written(tmp_path, a_journal(), since=2)).lines] == [3]


def test_wherever_a_file_is_cut_it_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path, a_journal())
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(JournalFileError, match=r"journal\.jsonl") as raised:
            read_journal(path)
        whole = data[:size].count(b"\n")
        if size >= len(lines[0]):
            assert isinstance(raised.value, JournalCut)
            assert "was cut" in str(raised.value)
            assert len(raised.value.journal.lines) == min(whole - 1, 3)


def test_a_line_that_is_missing_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path, a_journal())
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2] + lines[3:]))
    with pytest.raises(JournalCut, match="2 entries are there, and 3 were written"):
        read_journal(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "[]\n",
        '{"kind": "end", "entries": 0}\n',
        '{"kind": "journal", "format": 2, "forgotten": 0}\n',
        '{"kind": "journal", "format": 1}\n',
        '{"kind": "journal", "format": 1, "forgotten": 0, "nodes": 1, "cluster_id": "", "point": 0}\n',
        '{"kind": "journal", "format": 1, "forgotten": 0, "nodes": [], "cluster_id": "", "point": null}\n',
        '{"kind": ["journal"]}\n',
        "[" * 100_000 + "\n",
        "\x00\x01\xff",
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(JournalFileError, match="file") as raised:
        read_journal(path)
    assert not isinstance(raised.value, JournalCut)


NO_LINES: list[tuple[int, Mapping[str, object]]] = [
    *(
        (2, change)
        for change in (
            {"kind": "other"},
            {"number": "1"},
            {"request": None},
            {"api": 1},
            {"response": []},
            {"client_id": 1},
            {"interference": 1},
            {"caused_by": "1"},
            {"point": "1"},
            {"took_ms": "1"},
            {"took_ms": math.nan},
            *({"received_ms": each} for each in (-1, 1e300, math.nan, math.inf, 10**400)),
        )
    ),
    *((3, change) for change in ({"at_ms": None}, {"at_ms": 1e300}, {"at_ms": math.nan}, {"text": 1}, {"whose": []})),
]


@pytest.mark.parametrize(("number", "change"), NO_LINES)
def test_a_line_in_the_middle_that_is_none_is_told_by_its_number(
    tmp_path: Path, number: int, change: Mapping[str, object]
) -> None:
    path = written(tmp_path, a_journal())
    lines = path.read_text().splitlines()
    lines[number - 1] = json.dumps({**json.loads(lines[number - 1]), **change})
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(JournalFileError, match=f"line {number} is no line of a journal"):
        read_journal(path)


def test_lines_of_two_journals_are_not_taken_for_one(tmp_path: Path) -> None:
    path = written(tmp_path, a_journal())
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines + lines))
    with pytest.raises(JournalFileError, match="behind its end, line 5, there is more"):
        read_journal(path)
    path.write_text("".join(lines[:-1] + lines))
    with pytest.raises(JournalFileError, match="line 5 begins another one"):
        read_journal(path)


def test_ends_of_logs_that_are_missing_are_noticed(tmp_path: Path) -> None:
    journal = a_journal()
    journal.points.next({METADATA: LogEnd("", 0, 1, 0)})
    path = written(tmp_path, journal)
    assert [each.ends for each in read_journal(path).history.changes] == [{METADATA: LogEnd("", 0, 1, 0)}]
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"kind":"ends"' not in line))
    with pytest.raises(JournalCut, match="0 lines with ends of logs are there, and 1 were written"):
        read_journal(path)


def test_ends_of_logs_that_are_in_another_order_are_noticed(tmp_path: Path) -> None:
    journal = new_journal()
    for offset in range(1, 4):
        journal.points.next({METADATA: LogEnd("", 0, offset, 0)})
    path = written(tmp_path, journal)
    first, *changes, end = path.read_text().splitlines(keepends=True)
    assert read_journal(path).history.at(3) == {METADATA: LogEnd("", 0, 3, 0)}
    path.write_text("".join([first, *reversed(changes), end]))
    with pytest.raises(JournalFileError, match="line 3 goes back to a point in front of the last one"):
        read_journal(path)


def test_the_ends_of_many_logs_are_several_lines(tmp_path: Path) -> None:
    journal = new_journal(most_bytes=2_000)
    ends = {TopicPartition("t", index): LogEnd("id", 0, index, 0) for index in range(2 * MOST_ENDS + 1)}
    journal.points.next(ends)
    for _ in range(3):
        heartbeat(journal)
    journal.points.next({TopicPartition("t", 0): None, TopicPartition("t", 1): LogEnd("id", 0, 7, 0)})
    entry = heartbeat(journal)
    assert journal.points.history().base
    path = written(tmp_path, journal)
    assert max(map(len, path.read_text().splitlines())) < 60 * MOST_ENDS
    history = read_journal(path).history
    assert history.at(history.base_point) == ends
    assert history.at(entry.point) == journal.points.history().at(entry.point)
    with pytest.raises(PointGone):
        history.at(history.base_point - 1)


def test_what_was_forgotten_is_told(tmp_path: Path) -> None:
    journal = new_journal(most_bytes=2_000)
    for _ in range(9):
        heartbeat(journal)
    assert read_journal(written(tmp_path, journal)).forgotten == journal.forgotten > 0
    assert read_journal(written(tmp_path, journal, since=journal.forgotten)).forgotten == 0
