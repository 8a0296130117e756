"""Runs that were kept, side by side: which faults they share, and what became of their clients."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from click.testing import CliRunner

from .compare import main
from .journal import FaultEntry
from .outcome import Told

STOP = FaultEntry("stop", "leader", 0.25, 3.5, True, 2, 10.0, 13.5, 1.25, {"2": 4.5})
MUTE = FaultEntry("mute", "follower", 0.75, 2.5, False, 3, 20.0, 22.5, None, {"3": None})
DEAF = FaultEntry("deaf", "follower", 0.75, 2.5, False, 3, 20.0, 22.5, None, {"3": 0.5})


def keep_run(directory: Path, kind: str, faults: Sequence[FaultEntry], given_up: list[tuple[str, str, int]]) -> Path:
    directory.mkdir()
    (directory / "faults.jsonl").write_text("".join(json.dumps(asdict(each)) + "\n" for each in faults))
    Told([kind] * 3, 7, 5.0, True, 1, 1000, 900, {"copier 1": 12}, given_up, {"librdkafka": "2.16.0"}).write(directory)
    return directory


def compare(*directories: Path) -> dict[str, list[str]]:
    """The lines behind the first, by what they begin with."""
    done = CliRunner().invoke(main, [*map(str, directories)])
    assert done.exit_code == 0, done.output
    first, *lines = done.output.splitlines()
    rows = [line.rsplit(maxsplit=len(directories)) for line in lines if not line.startswith("nodes  ")]
    return {"": [first.split()[0]], **{name.strip(): figures for name, *figures in rows}}


def test_runs_are_compared_by_what_their_nodes_and_clients_did(tmp_path: Path) -> None:
    told = compare(
        keep_run(tmp_path / "ours", "pykbroker", [STOP, MUTE], [("copier 1", "_FENCED", 3)]),
        keep_run(tmp_path / "theirs", "apache-kafka", [STOP], [("copier 1", "INVALID_TXN_STATE", 1)]),
    )
    assert told["seed"] == ["7", "7"]
    assert told["faults"] == ["2", "1"]
    assert told["all within s"] == ["4.5", "4.5"]
    assert told["nodes that were hit again first"] == ["1", "0"]
    assert told["done by the copier 1"] == ["12", "12"]
    assert told["another copier 1 after _FENCED"] == ["3", "0"]
    assert told["another copier 1 after INVALID_TXN_STATE"] == ["0", "1"]


def test_faults_are_the_same_up_to_the_first_one_that_differs_whichever_nodes_they_hit(tmp_path: Path) -> None:
    on_another_node = FaultEntry("stop", "leader", 0.25, 3.5, True, 1, 11.0, 14.5, None)
    ours = keep_run(tmp_path / "ours", "pykbroker", [STOP, MUTE, DEAF], [])
    theirs = keep_run(tmp_path / "theirs", "apache-kafka", [on_another_node, DEAF, DEAF], [])
    assert compare(ours, theirs)[""] == ["1"]
    assert compare(ours, ours)[""] == ["3"]


def test_a_run_that_did_not_come_to_its_end_is_no_side_of_a_comparison(tmp_path: Path) -> None:
    (tmp_path / "faults.jsonl").write_text("")
    done = CliRunner().invoke(main, [str(tmp_path)])
    assert done.exit_code != 0
    assert "not a run that came to its end" in done.output
