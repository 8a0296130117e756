"""Quorums under all kinds of trouble; what fails is replayed by `python -m tests.raft.simulate SEED`."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from tests.simulations import are_usual, seed_groups, skip_when_time_is_up

from .planted_bugs import HUNT
from .simulation import Violation, simulate

pytestmark = pytest.mark.flaky(reruns=0)

USUAL = 100

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


@seed_groups(USUAL)
def test_invariants_hold_whatever_fails(seeds: range) -> None:
    skip_when_time_is_up()
    seen: Counter[str] = Counter()
    for seed in seeds:
        try:
            seen += simulate(seed).seen
        except Violation as violation:
            pytest.fail(f"{violation}\nreplay: python -m tests.raft.simulate {seed}")
    if are_usual(seeds, USUAL):
        rare = {what: seen[what] for what, least in AT_LEAST.items() if seen[what] < least}
        assert not rare, f"these runs have too little of {rare}"


@pytest.mark.parametrize("bug", HUNT.seeds)
def test_planted_bugs_are_found(bug: str) -> None:
    HUNT.check(bug)
