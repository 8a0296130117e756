"""The sample is the same for the same seed, and each of its bugs means something. Without cosmic-ray there is none."""

from __future__ import annotations

import pytest

from tests.mutations.mutant import ROOT, meaning

pytest.importorskip("cosmic_ray", reason="it comes with the extra `mutation`")


def test_a_seed_draws_the_same_bugs_and_another_one_others() -> None:
    from tests.mutations.sample import sample

    drawn = sample("raft", 5, 13)
    assert len(drawn) == 5
    assert sample("raft", 5, 13) == drawn
    assert sample("raft", 5, 14) != drawn
    for each in drawn:
        assert meaning(each.text) != meaning((ROOT / each.path).read_text())
