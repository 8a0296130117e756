"""When a run is good: histories that hold, and clients of every kind that did something under the faults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .journal import Journal
from .outcome import Outcome


def idle(directory: Path, done: Mapping[str, int]) -> list[str]:
    with Journal(directory / "faults.jsonl") as journal:
        return Outcome([], journal, done, 8, {}, []).idle


def test_one_of_two_of_a_kind_may_stand_still(tmp_path: Path) -> None:
    assert idle(tmp_path, {"copier 1": 1, "copier 2": 7, "transactions": 8}) == []


def test_a_kind_of_which_none_does_anything_is_idle(tmp_path: Path) -> None:
    done = {"member 1": 4, "member 2": 3, "newer member 1": 9, "transactions": 7, "plain producer": 800}
    assert idle(tmp_path, done) == ["member", "transactions"]
