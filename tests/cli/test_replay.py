"""`pykbroker replay`: from a journal's file and a savepoint to the state behind any entry."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer

from pykbroker.cli.main import main
from pykbroker.testing import Broker


@dataclass(frozen=True, slots=True)
class Recorded:
    """A journal with savepoints of its end and of a time in between; requests are numbers."""

    journal: Path
    later: Path
    between: Path
    created: int
    first: int
    committed: int
    first_ended: datetime


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    place = tmp_path_factory.mktemp("recorded")
    with Broker({"node.id": 7}) as broker:
        topic = broker.create_topic("orders", partitions=2)
        created = broker.requests("CreateTopics")[-1].number
        broker.clock.advance("1d", scope="tokens")
        topic.produce("one", partition=0)
        first = broker.requests("Produce")[-1]
        broker.save(place / "between")
        broker.group("g").commit({("orders", 0): 1})
        committed = broker.requests("OffsetCommit")[-1].number
        topic.produce("two", partition=1)
        broker.create_topic("later").produce("three")
        broker.group("g").commit({("orders", 0): 0})
        broker.journal.json_lines(place / "journal.jsonl")
        topic.produce("four", partition=0)
        broker.save(place / "later")
    took_ms = first.took_ms
    assert took_ms is not None
    ended = datetime.fromtimestamp(first.received.timestamp() + (took_ms + 0.1) / 1000)
    return Recorded(
        place / "journal.jsonl", place / "later", place / "between", created, first.number, committed, ended
    )


def replay(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


def refused(*arguments: object) -> str:
    result = replay(*arguments)
    assert result.exit_code == 1, result.output
    assert result.output.count("\n") == 1, result.output
    return result.output


def test_entries_are_listed(recorded: Recorded) -> None:
    everything = replay(recorded.journal).output.splitlines()
    assert len(everything) == len({line.split()[0] for line in everything}) > 6
    (created,) = [line for line in everything if "CreateTopics" in line and "orders" in line]
    assert created.startswith(f"#{recorded.created} ")
    assert any("__consumer_offsets-0: group g: offsets committed" in line for line in everything)
    produced = replay(recorded.journal, "--api", "produce", "--topic", "orders").output.splitlines()
    assert [line.split()[2] for line in produced] == ["Produce", "Produce"]
    assert replay(recorded.journal, "--client-id", "nobody").output == ""
    assert "did you mean Produce?" in refused(recorded.journal, "--api", "Produces")


def test_entries_are_listed_as_json(recorded: Recorded) -> None:
    everything = replay(recorded.journal).output.splitlines()
    entries = [json.loads(line) for line in replay(recorded.journal, "--json").output.splitlines()]
    assert len(entries) == len(everything)
    assert {each["kind"] for each in entries} == {"exchange", "event"}
    produced = replay(recorded.journal, "--json", "--api", "produce", "--topic", "orders").output.splitlines()
    assert len(produced) == 2
    assert json.loads(produced[0])["number"] == recorded.first
    assert "--json are for lists" in refused(recorded.journal, "--json", "--until", 1)


def test_a_directory_is_as_of_an_entry(recorded: Recorded, tmp_path: Path) -> None:
    where = tmp_path / "data"
    result = replay(recorded.journal, "--savepoint", recorded.later, "--until", recorded.first, "--data-dir", where)
    assert result.output == f"{where} has the state behind #{recorded.first}\n"
    with Broker({"node.id": 7, "log.dirs": str(where)}, data_dir=tmp_path) as broker:
        assert broker.topics() == ["orders"]
        assert broker.topic("orders").values() == [b"one"]
        broker.topic("orders").produce("another", partition=0)
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["orders"])
        messages = [consumer.poll(30), consumer.poll(30)]
        assert [message and message.value() for message in messages] == [b"one", b"another"]
        consumer.close()
    assert "is not empty" in refused(
        recorded.journal, "--savepoint", recorded.later, "--until", recorded.first, "--data-dir", where
    )


def test_a_savepoint_is_as_of_an_entry_or_a_time(recorded: Recorded, tmp_path: Path) -> None:
    flags = (recorded.journal, "--savepoint", recorded.later)
    for when, values, offsets in (
        (("--until", recorded.created), [], {}),
        (("--until", recorded.committed), [b"one"], {1}),
        (("--at", recorded.first_ended.isoformat()), [b"one"], {}),
    ):
        result = replay(*flags, *when, "--output", tmp_path / "then")
        assert result.exit_code == 0, result.output
        with Broker(savepoint=tmp_path / "then") as broker:
            assert broker.topic("orders").values() == values
            assert set(broker.group("g").offsets().values()) == set(offsets)
            assert broker.clock.advanced("tokens") == timedelta(days=len(values))


def test_what_cannot_be_is_one_line(recorded: Recorded, tmp_path: Path) -> None:
    def of(journal: Path, savepoint: Path, number: object = recorded.committed) -> str:
        said = refused(journal, "--savepoint", savepoint, "--until", number, "--data-dir", tmp_path / "none")
        assert not (tmp_path / "none").exists()
        return said

    assert f"the savepoint is older than #{recorded.committed}" in of(recorded.journal, recorded.between)
    assert "the journal has no #9999: it has #1 to" in of(recorded.journal, recorded.later, 9999)
    with Broker({"node.id": 7}) as other:
        other.save(tmp_path / "other")
    assert "in cluster" in of(recorded.journal, tmp_path / "other")
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join(recorded.journal.read_text().splitlines(keepends=True)[:-3]))
    assert "was cut" in of(cut, recorded.later)
    listed = replay(cut)
    assert listed.exit_code == 1
    *entries, last = listed.output.splitlines()
    assert entries == replay(recorded.journal).output.splitlines()[: len(entries)]
    assert f"the end is missing; {len(entries)} entries before that can be read" in last
    lines = recorded.journal.read_text().splitlines(keepends=True)
    first = json.loads(lines[1])
    for ends in ({"t-0": ["id", 5, 4, 0, 0]}, {"t-0": ["id", 0, "4", 0, 0]}, {"../t": None}, {"t-0": [1]}):
        cut.write_text("".join([lines[0], json.dumps({**first, "ends": ends}), "\n", *lines[2:]]))
        assert "line 2" in of(cut, recorded.later)
    assert "cannot be read" in of(recorded.journal, tmp_path / "none at all")
    assert "either --until N or --at TIME" in refused(recorded.journal, "--savepoint", recorded.later)
    assert "needs --savepoint" in refused(recorded.journal, "--until", 3)
    assert "a time is such as" in refused(
        recorded.journal, "--savepoint", recorded.later, "--at", "noon", "--output", "x"
    )
    assert "File name too long" in refused(
        recorded.journal, "--savepoint", recorded.later, "--until", recorded.first, "--data-dir", tmp_path / ("x" * 300)
    )
    for source in (recorded.journal, recorded.later):
        assert "would take the place of" in refused(
            recorded.journal, "--savepoint", recorded.later, "--until", recorded.first, "--output", source
        )
    assert "for lists" in refused(recorded.journal, "--api", "Produce", "--until", 3)


def test_a_journal_of_a_cluster_has_no_states(tmp_path: Path, recorded: Recorded) -> None:
    from pykbroker.testing import Cluster

    with Cluster(brokers=2) as cluster:
        cluster.create_topic("t").produce("one")
        cluster.journal.json_lines(tmp_path / "journal.jsonl")
    said = refused(
        tmp_path / "journal.jsonl", "--savepoint", recorded.later, "--until", 3, "--output", tmp_path / "none"
    )
    assert "of a cluster of 2 nodes" in said
