"""Our assignments next to those of Apache Kafka's own assignors, recorded by `record_assignments`."""

from __future__ import annotations

import pytest

from .cases import Group, Target, ensure_valid, moved, sizes
from .record_assignments import recorded

UNIFORM = [(group, target) for assignor, group, target in recorded() if assignor == "uniform"]
RANGE = [(group, target) for assignor, group, target in recorded() if assignor == "range"]


def test_there_is_a_recording_of_every_kind() -> None:
    assert all(
        any(group.is_homogeneous is is_homogeneous for group, _ in recordings)
        for recordings in (UNIFORM, RANGE)
        for is_homogeneous in (True, False)
    )


@pytest.mark.parametrize(("group", "kafkas"), RANGE)
def test_range_gives_what_kafka_gives(group: Group, kafkas: Target) -> None:
    assert {name: topics for name, topics in group.assigned("range").items() if topics} == {
        name: topics for name, topics in kafkas.items() if topics
    }


@pytest.mark.parametrize(("group", "kafkas"), UNIFORM)
def test_uniform_is_no_less_even_than_kafkas(group: Group, kafkas: Target) -> None:
    ours = group.assigned("uniform")
    ensure_valid(group, ours)
    if group.is_homogeneous:
        assert sorted(sizes(ours).values()) == sorted(sizes(kafkas).values())
    else:
        assert _unevenness(ours) <= _unevenness(kafkas)


@pytest.mark.parametrize(("group", "kafkas"), UNIFORM)
def test_uniform_moves_no_more_than_kafkas_for_the_same_balance(group: Group, kafkas: Target) -> None:
    ours = group.assigned("uniform")
    if _unevenness(ours) == _unevenness(kafkas):
        assert moved(group, ours) <= moved(group, kafkas)


def _unevenness(target: Target) -> int:
    return sum(size**2 for size in sizes(target).values())
