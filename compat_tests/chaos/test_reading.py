"""Where the readers of a run begin."""

from __future__ import annotations

from pathlib import Path

from tests.history.recorder import Recorder

from .reading import MOST_READ_AGAIN, where_to_begin
from .stage import Stage, all_partitions, key_of

BEGINNINGS = {"plain-0": 70_000, "orders-1": 500}


def begun(directory: Path, reached: dict[str, int]) -> dict[str, int]:
    stage = Stage(directory, "", Recorder(), 1, beginnings=BEGINNINGS)
    return {key_of(each): each.offset for each in where_to_begin(stage, reached)}


def test_the_first_reader_of_a_round_begins_with_the_round(tmp_path: Path) -> None:
    assert begun(tmp_path, {}) == dict.fromkeys(map(key_of, all_partitions()), 0) | BEGINNINGS


def test_a_later_reader_reads_as_much_again_in_a_long_round_as_in_a_short_one(tmp_path: Path) -> None:
    found = begun(tmp_path, {"plain-0": 170_000, "copy-0": 100_000})
    assert found["plain-0"] == 170_000 - MOST_READ_AGAIN
    assert found["copy-0"] == 100_000 - MOST_READ_AGAIN


def test_no_reader_begins_in_front_of_its_round(tmp_path: Path) -> None:
    assert begun(tmp_path, {"plain-0": 70_000 + MOST_READ_AGAIN - 1})["plain-0"] == 70_000
