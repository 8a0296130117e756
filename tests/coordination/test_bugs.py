"""The simulation finds mistakes that are planted in the broker."""

from __future__ import annotations

import pytest

from .bugs import HUNT


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("bug", HUNT.seeds)
def test_a_planted_bug_is_found(bug: str) -> None:
    HUNT.check(bug)


def test_there_are_enough_of_them() -> None:
    assert len(HUNT.seeds) >= 12
