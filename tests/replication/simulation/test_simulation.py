"""Many short runs of replicas that fail in all ways, and mistakes that they find; a failure names the run."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulations import are_usual, seed_groups, skip_when_time_is_up

from .__main__ import main
from .bugs import HUNT
from .world import Plan, World, simulate

USUAL = 100


pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.flaky(reruns=0)]


def run(seed: int) -> World:
    try:
        return simulate(seed)
    except BaseException as failure:
        failure.add_note(f"again: python -m tests.replication.simulation {seed}")
        raise


@seed_groups(USUAL)
def test_whatever_happens_replicas_agree_and_nothing_acknowledged_is_lost(seeds: range) -> None:
    skip_when_time_is_up()
    seen: Counter[str] = Counter()
    for seed in seeds:
        world = run(seed)
        seen["faults"] += world.faults
        seen["elections"] += world.elections
        seen["acknowledged"] += len(world.invariants.acknowledged)
    if are_usual(seeds, USUAL):
        assert seen["faults"] > 5 * USUAL
        assert seen["elections"] > USUAL
        assert seen["acknowledged"] > 10 * USUAL


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


@pytest.mark.parametrize("bug", HUNT.seeds)
def test_a_planted_bug_is_found(bug: str) -> None:
    HUNT.check(bug)


def test_there_are_enough_bugs() -> None:
    assert len(HUNT.seeds) >= 12
