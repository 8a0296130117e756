"""When a run is good: histories that hold, and clients of every kind that did something under the faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from . import run
from .contents import Contents
from .journal import Journal
from .outcome import Outcome
from .rounds import Played


def idle(directory: Path, done: Mapping[str, int]) -> list[str]:
    with Journal(directory / "faults.jsonl") as journal:
        return Outcome([], journal, done, 8, {}, []).idle


def test_one_of_two_of_a_kind_may_stand_still(tmp_path: Path) -> None:
    assert idle(tmp_path, {"copier 1": 1, "copier 2": 7, "transactions": 8}) == []


def test_a_kind_of_which_none_does_anything_is_idle(tmp_path: Path) -> None:
    done = {"member 1": 4, "member 2": 3, "newer member 1": 9, "transactions": 7, "plain producer": 800}
    assert idle(tmp_path, done) == ["member", "transactions"]


def test_a_client_that_never_did_anything_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(Counter({"copier 1": 0, "transactions": 9}), Counter(), Contents({}))
    monkeypatch.setattr(run, "play", lambda *_: played)
    nothing: Any = SimpleNamespace(bootstrap="", submit=lambda _: None, ready=tuple, rest=tuple)
    rounds = run._Run(tmp_path, nothing, nothing, run.Terms(1, 1.0, 60.0), nothing, lambda _: None)
    rounds.play_rounds()
    assert idle(tmp_path, rounds.done) == ["copier"]
