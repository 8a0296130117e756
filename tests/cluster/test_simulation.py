"""Runs of three nodes, each with its own accidents, and mistakes that they find; a failure names the run.

PYKBROKER_SIMULATION_SEEDS=N makes more of them (`make simulate SEEDS=N`).
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.history.operations import format_history
from tests.simulations import Outcome, is_wrong, run_good

from .__main__ import main
from .bugs import BUGS
from .simulation import simulate

SEEDS = int(os.environ.get("PYKBROKER_SIMULATION_SEEDS", "100"))
SEEDS_PER_TEST = 20
MOST_RUNS = 40


pytestmark = [pytest.mark.usefixtures("seldom_collected", "quiet"), pytest.mark.flaky(reruns=0)]


def run(seed: int) -> Outcome:
    return run_good("tests.cluster", simulate, seed)


@pytest.mark.timeout(0 if SEEDS > 100 else 300)
@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_whatever_happens_nothing_acknowledged_is_lost_and_nothing_hangs(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, min(first + SEEDS_PER_TEST, SEEDS)):
        outcome = run(seed)
        seen["troubles"] += len(outcome.told)
        seen["deaths"] += outcome.deaths
        seen.update(outcome.report.figures)
    if SEEDS - first >= SEEDS_PER_TEST:
        assert seen["troubles"] > 2 * SEEDS_PER_TEST
        assert seen["deaths"] > SEEDS_PER_TEST // 4
        for kind in ("txn ok", "commit ok", "send ok", "committed ok"):
            assert seen[kind] > SEEDS_PER_TEST, f"the runs have hardly any {kind}"


def test_one_seed_gives_one_history() -> None:
    first = list(format_history(run(2).operations))
    assert list(format_history(run(2).operations)) == first
    assert len(first) > 100


def test_a_seed_is_played_again_by_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["2"]) == 0
    assert "good: " in capsys.readouterr().out


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    with BUGS[bug].planted():
        assert any(is_wrong(simulate, BUGS[bug].first_seed + run) for run in range(MOST_RUNS)), "no run shows it"


def test_there_are_enough_of_them() -> None:
    assert len(BUGS) >= 12
