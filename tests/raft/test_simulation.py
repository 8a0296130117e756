"""Quorums under all kinds of trouble; what fails is replayed by `python -m tests.raft.simulate SEED`.

PYKBROKER_SIMULATION_SEEDS=N makes more of them (`make simulate SEEDS=N`).
"""

from __future__ import annotations

import logging
import os
from collections import Counter

import pytest

from .planted_bugs import PLANTS, Plant
from .simulation import Simulation, Violation, simulate

pytestmark = pytest.mark.flaky(reruns=0)

SEEDS = int(os.environ.get("PYKBROKER_SIMULATION_SEEDS", "1000"))
SEEDS_PER_TEST = 100
SEEDS_FOR_BUGS = 200
BEGIN_AT = {
    "fetch_offset_told_before_the_flush": 120,
    "voters_changed_without_waiting": 120,
    "observers_counted": 60,
    "voters_alone_are_voted_for": 200,
    "left_out_at_once": 300,
}
"""Bugs that few runs notice: the search for them begins shortly before one that does."""

AT_LEAST = {
    "upgrades of kraft.version": 1,
    "elections": 150,
    "acknowledged": 2000,
    "truncations": 10,
    "unflushed records lost": 3,
    "snapshots taken": 50,
    "snapshots fetched": 10,
    "epochs told by strangers": 50,
    "voters added": 8,
    "voters removed": 25,
    "crashes": 100,
    "pauses": 40,
    "disks lost": 2,
    "one-way cuts": 80,
    "messages lost": 200,
    "messages doubled": 60,
    "messages overtaken": 200,
}
"""What a hundred runs together go through; fewer would be other runs than these."""


@pytest.fixture(autouse=True)
def _quiet() -> object:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(0 if SEEDS > 1000 else 300)
@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_invariants_hold_whatever_fails(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, min(first + SEEDS_PER_TEST, SEEDS)):
        try:
            seen += simulate(seed).seen
        except Violation as violation:
            pytest.fail(f"{violation}\nreplay: python -m tests.raft.simulate {seed}")
    if SEEDS - first >= SEEDS_PER_TEST:
        rare = {what: seen[what] for what, least in AT_LEAST.items() if seen[what] < least}
        assert not rare, f"these runs have too little of {rare}"


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_planted_bugs_are_found(plant: Plant) -> None:
    begin = BEGIN_AT.get(plant.__name__, 0)
    for seed in range(begin, begin + SEEDS_FOR_BUGS):
        try:
            Simulation(seed, prepare=plant).run()
        except Violation:
            return
    pytest.fail(f"{SEEDS_FOR_BUGS} runs did not notice it")
