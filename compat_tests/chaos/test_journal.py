"""A journal tells of each fault when its nodes were back, and gives the faults again with the nodes that they hit."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from .journal import FaultEntry, Journal, NodesReturns, recorded_faults
from .plan import PlannedFault
from .returns import Returns

STOP = FaultEntry("stop", "leader", 0.25, 3.5, True, 2, 10.0, 13.5, 1.25)
MUTE = FaultEntry("mute", "follower", 0.75, 2.5, False, 3, 20.0, 22.5, None)


def settled(**back_after_s: float) -> Returns:
    return Returns(0.0, set(), {int(node.removeprefix("node_")): told for node, told in back_after_s.items()})


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_a_journal_gives_the_faults_again_with_their_nodes(tmp_path: Path) -> None:
    with Journal(tmp_path / "faults.jsonl") as journal:
        journal.note(STOP, settled(node_2=1.0))
        journal.note(MUTE, settled(node_3=0.5))
    assert list(recorded_faults(lines_of(tmp_path / "faults.jsonl"))) == [
        PlannedFault("stop", "leader", 0.25, 3.5, True, 2),
        PlannedFault("mute", "follower", 0.75, 2.5, False, 3),
    ]
    assert journal.returns_s() == [1.25]
    assert journal.counts() == {("stop", "leader"): 1, ("mute", "follower"): 1}


def test_a_fault_is_written_in_its_turn_when_each_of_its_nodes_is_back(tmp_path: Path) -> None:
    path = tmp_path / "faults.jsonl"
    journal = Journal(path)
    awaited = Returns(0.0, {2})
    journal.note(STOP, awaited)
    journal.note(MUTE, settled(node_3=0.5))
    assert lines_of(path) == []
    awaited.settle(2, 7.25)
    journal.note(MUTE, settled(node_3=0.75))
    told = [json.loads(line)["nodes_back_after_s"] for line in lines_of(path)]
    assert told == [{"2": 7.25}, {"3": 0.5}, {"3": 0.75}]


def test_a_node_that_is_away_when_the_run_ends_was_never_seen_to_be_back(tmp_path: Path) -> None:
    with Journal(tmp_path / "faults.jsonl") as journal:
        journal.note(STOP, Returns(0.0, {2}))
    assert json.loads(*lines_of(tmp_path / "faults.jsonl"))["nodes_back_after_s"] == {"2": None}
    assert journal.nodes_returns() == NodesReturns([], 1)


def test_the_figures_of_returns_leave_out_the_nodes_of_which_nothing_is_known(tmp_path: Path) -> None:
    with Journal(tmp_path / "faults.jsonl") as journal:
        for number in range(100, 0, -1):
            journal.note(STOP, settled(node_1=float(number)))
        journal.note(MUTE, Returns(0.0, {1, 3}))
    returns = journal.nodes_returns()
    assert [returns.within_s(share) for share in (0.5, 0.99, 1)] == [50.0, 99.0, 100.0]
    assert returns.unknown == 2


def test_a_journal_from_before_nodes_were_watched_can_be_played(tmp_path: Path) -> None:
    line = {key: value for key, value in asdict(MUTE).items() if key != "nodes_back_after_s"}
    assert list(recorded_faults([json.dumps(line)])) == [MUTE.planned]


@pytest.mark.parametrize("line", ["", "{}", "[]", '{"kind": "stop"}', "stop"])
def test_a_line_that_is_no_entry_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="line 1 is no entry of a journal"):
        list(recorded_faults([line]))
