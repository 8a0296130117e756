"""Clients in processes of their own: what they see and do is the round's, and one that stands still is replaced."""

from __future__ import annotations

import ctypes
import json
import os
import random
from pathlib import Path

import pytest

from compat_tests.waiting import until
from tests.history.operations import parse_history
from tests.history.recorder import Recorder

from . import apart
from .apart import STOOD_STILL, WorkApart, gather
from .stage import Client, Stage

FIRST_HAS_COME = "first"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, "", Recorder(), 1, round_number=2)


def send_until_told(stage: Stage, _: random.Random) -> None:
    proc = stage.recorder.new_process()
    number = 0
    while stage.reading.wait(0.01) and stage.reading.is_set():
        sending = stage.recorder.invoke(proc, "send")
        sending.sent(sending.sending("plain-0", stage.new_value()), number)
        sending.ok()
        stage.progress.note()
        number += 1
    assert stage.writing.is_set()


def stand_still_at_first(stage: Stage, rng: random.Random) -> None:
    """As confluent-kafka does: it waits for a lock, and no other thread of the process runs."""
    first = stage.directory / FIRST_HAS_COME
    if not first.exists():
        first.touch()
        stage.recorder.invoke(stage.recorder.new_process(), "poll")
        lock = ctypes.create_string_buffer(64)
        ctypes.PyDLL(None).pthread_mutex_lock(lock)
        ctypes.PyDLL(None).pthread_mutex_lock(lock)
    send_until_told(stage, rng)


def fail(stage: Stage, _: random.Random) -> None:
    raise AssertionError(f"round {stage.round_number} is bad")


def die(stage: Stage, _: random.Random) -> None:
    os._exit(7)


def started(stage: Stage, work: apart.Work) -> Client:
    client = Client(stage, "member 1", WorkApart(work))
    client.start()
    return client


def test_what_a_client_does_elsewhere_counts_here_and_is_in_the_history(stage: Stage) -> None:
    client = started(stage, send_until_told)
    until(lambda: stage.progress.so_far()["member 1"] > 3, "it gets something done")
    assert "send_until_told" in client.where()
    stage.reading.clear()
    client.finish(60.0)
    path = stage.directory / "history.jsonl"
    path.write_text("".join(f"{line}\n" for line in stage.recorder.lines))
    gather(path)
    sends = [each for each in parse_history(path.read_text().splitlines()) if each.kind == "send"]
    assert len(sends) == stage.progress.so_far()["member 1"]
    assert sends[0].sends[0].value == "v2.member-1-1.1"
    assert [each.name for each in stage.directory.glob("*.jsonl")] == ["history.jsonl"]


def test_another_one_takes_the_place_of_a_process_in_which_no_thread_runs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "STANDS_STILL_S", 5.0)
    client = started(stage, stand_still_at_first)
    until(lambda: (stage.directory / FIRST_HAS_COME).exists(), "it stands still")
    until(lambda: "stand_still_at_first" in client.where(), "it says where")
    until(lambda: stage.progress.so_far()["member 1"], "another one gets something done")
    assert stage.progress.given_up() == {("member 1", STOOD_STILL): 1}
    stage.reading.clear()
    client.finish(60.0)
    assert len(list(stage.directory.glob("history-*.jsonl"))) == 2


@pytest.mark.parametrize(("work", "why"), [(fail, "round 2 is bad"), (die, "exit code 7")])
def test_what_ends_the_process_is_raised(stage: Stage, work: apart.Work, why: str) -> None:
    client = started(stage, work)
    with pytest.raises(AssertionError, match=why):
        client.finish(60.0)


def test_histories_of_several_processes_are_one_without_the_torn_lines_of_a_killed_one(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    for file, at in ((path, (1, 4)), (tmp_path / "history-a-1.jsonl", (2, 3))):
        events = [{"t_ns": each, "proc": 1, "type": "invoke", "f": "poll"} for each in at]
        file.write_text("".join(json.dumps(each) + "\n" for each in events))
    with (tmp_path / "history-a-1.jsonl").open("a") as file:
        file.write('{"t_ns":5,"pro')
    gather(path)
    assert [json.loads(line)["t_ns"] for line in path.read_text().splitlines()] == [1, 2, 3, 4]
