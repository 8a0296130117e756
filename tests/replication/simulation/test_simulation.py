"""Many short runs of replicas that fail in all ways, and mistakes that they find; a failure names the run.

PYKBROKER_SIMULATION_SEEDS=N makes more of them (`make simulate SEEDS=N`).
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from .__main__ import main
from .bugs import BUGS
from .invariants import Violated
from .world import Plan, World, simulate

SEEDS = int(os.environ.get("PYKBROKER_SIMULATION_SEEDS", "1000"))
SEEDS_PER_TEST = 100
MOST_RUNS = 400


pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.flaky(reruns=0)]


def run(seed: int) -> World:
    try:
        return simulate(seed)
    except BaseException as failure:
        failure.add_note(f"again: python -m tests.replication.simulation {seed}")
        raise


@pytest.mark.timeout(0 if SEEDS > 1000 else 300)
@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_whatever_happens_replicas_agree_and_nothing_acknowledged_is_lost(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, min(first + SEEDS_PER_TEST, SEEDS)):
        world = run(seed)
        seen["faults"] += world.faults
        seen["elections"] += world.elections
        seen["acknowledged"] += len(world.invariants.acknowledged)
    if SEEDS - first >= SEEDS_PER_TEST:
        assert seen["faults"] > 5 * SEEDS_PER_TEST
        assert seen["elections"] > SEEDS_PER_TEST
        assert seen["acknowledged"] > 10 * SEEDS_PER_TEST


def test_there_are_runs_of_all_kinds() -> None:
    plans = [Plan.of(seed) for seed in range(100)]
    kinds = {(plan.min_isr, plan.has_elr, plan.flushes, plan.power_cuts) for plan in plans}
    assert kinds == {
        (1, False, False, False),
        (2, False, False, False),
        (2, True, False, False),
        (2, True, False, True),
        (1, False, True, True),
        (2, False, True, True),
    }


def test_one_seed_gives_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for seed in ("3", "3", "4"):
        assert main([seed]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] != told[2]
    assert "committed records acknowledged" in told[0]


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    with BUGS[bug].planted():
        assert any(_is_wrong(BUGS[bug].first_seed + number) for number in range(MOST_RUNS)), "no run shows it"


def _is_wrong(seed: int) -> bool:
    try:
        simulate(seed)
    except Violated:
        return True
    return False


def test_there_are_enough_bugs() -> None:
    assert len(BUGS) >= 12
