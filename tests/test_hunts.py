"""The search for planted bugs: with the pinned seed, with its neighbours, and in vain."""

from __future__ import annotations

import pytest

from tests.simulations import TRIES, Hunt


def hunt(*finding: int) -> Hunt:
    return Hunt("cluster", {"bug": 5}, lambda bug, seed: seed in finding)


def test_the_pinned_seed_finds_it() -> None:
    hunt(5, 6).check("bug")


@pytest.mark.parametrize("found", [6, 5 + TRIES - 1])
def test_another_seed_is_named_that_finds_it(found: int) -> None:
    with pytest.warns(UserWarning, match=f"seed {found} of cluster finds bug; 5 does no more"):
        hunt(found, found + 1).check("bug")


@pytest.mark.parametrize("finding", [(), (4, 5 + TRIES)])
def test_a_simulation_that_finds_it_no_more_fails(finding: tuple[int, ...]) -> None:
    told = f"no seed from 5 to {5 + TRIES - 1} finds bug .*tests.find_seed cluster bug"
    with pytest.raises(AssertionError, match=told):
        hunt(*finding).check("bug")
