"""The simulation finds mistakes that are planted in the broker, each in a few runs."""

from __future__ import annotations

import pytest

from tests.simulations import is_wrong

from .bugs import BUGS
from .simulation import simulate

MOST_RUNS = 150


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    with BUGS[bug].planted():
        assert any(is_wrong(simulate, BUGS[bug].first_seed + run) for run in range(MOST_RUNS)), "no run shows it"


def test_there_are_enough_of_them() -> None:
    assert len(BUGS) >= 12
