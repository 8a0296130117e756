"""Batches are combined as Kafka does it: the later delivery decides offset by offset."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.sharing.coordinator.batches import combine_batches
from pykbroker.sharing.persister import StateBatch

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


@st.composite
def any_batches(draw: st.DrawFn) -> list[StateBatch]:
    batch = st.builds(
        lambda first, length, state, count: StateBatch(first, first + length, state, count),
        st.integers(0, 40),
        st.integers(0, 12),
        st.sampled_from((AVAILABLE, ACKNOWLEDGED, ARCHIVED)),
        st.integers(1, 3),
    )
    return draw(st.lists(batch, max_size=12))


def by_offset(batches: Sequence[StateBatch]) -> dict[int, tuple[int, int]]:
    states: dict[int, tuple[int, int]] = {}
    for first, last, state, count in batches:
        for offset in range(first, last + 1):
            states[offset] = max(states.get(offset, (0, 0)), (count, state))
    return states


@given(st.lists(any_batches(), max_size=6), st.lists(st.integers(-1, 50), min_size=6, max_size=6))
def test_every_offset_has_its_latest_delivery(writes: list[list[StateBatch]], start_offsets: list[int]) -> None:
    so_far: tuple[StateBatch, ...] = ()
    expected: dict[int, tuple[int, int]] = {}
    for new, start_offset in zip(writes, start_offsets, strict=False):
        so_far = combine_batches(so_far, new, start_offset)
        for offset, state in by_offset(new).items():
            expected[offset] = max(expected.get(offset, (0, 0)), state)
        expected = {offset: state for offset, state in expected.items() if offset >= start_offset}
        assert by_offset(so_far) == expected
        ends = [(batch.first_offset, batch.last_offset) for batch in so_far]
        assert all(first <= last for first, last in ends)
        assert all(last < first for (_, last), (first, _) in pairwise(ends))


@pytest.mark.parametrize(
    ("so_far", "new", "start_offset", "combined"),
    [
        ([], [], 0, []),
        ([(0, 9, 0, 1)], [(0, 9, 2, 1)], 0, [(0, 9, 2, 1)]),
        ([(0, 9, 0, 1)], [(3, 5, 2, 1)], 0, [(0, 2, 0, 1), (3, 5, 2, 1), (6, 9, 0, 1)]),
        ([(0, 9, 0, 2)], [(3, 5, 2, 1)], 0, [(0, 9, 0, 2)]),
        ([(0, 4, 2, 1)], [(5, 9, 2, 1)], 0, [(0, 9, 2, 1)]),
        ([(0, 4, 2, 1)], [(5, 9, 2, 2)], 0, [(0, 4, 2, 1), (5, 9, 2, 2)]),
        ([(0, 9, 2, 1), (20, 29, 2, 1)], [], 25, [(25, 29, 2, 1)]),
        ([(0, 9, 2, 1), (20, 29, 0, 1)], [(5, 24, 2, 3)], -1, [(0, 4, 2, 1), (5, 24, 2, 3), (25, 29, 0, 1)]),
        # The first two are no neighbours of one state when Kafka meets them, and it never returns to them.
        ([], [(0, 4, 2, 2), (5, 6, 2, 1), (5, 9, 2, 2)], 0, [(0, 4, 2, 2), (5, 9, 2, 2)]),
    ],
)
def test_combinations(
    so_far: list[tuple[int, int, int, int]],
    new: list[tuple[int, int, int, int]],
    start_offset: int,
    combined: list[tuple[int, int, int, int]],
) -> None:
    batches = combine_batches(
        tuple(StateBatch(*each) for each in so_far), [StateBatch(*each) for each in new], start_offset
    )
    assert list(batches) == [StateBatch(*each) for each in combined]


def test_batches_that_overlap_again_and_again_take_little_time() -> None:
    stairs = [StateBatch(0, at, ACKNOWLEDGED, 20_000 - at) for at in range(20_000)]
    began = time.process_time()
    combined = combine_batches((), stairs, -1)
    assert time.process_time() - began < 5
    assert by_offset(combined) == {at: (20_000 - at, ACKNOWLEDGED) for at in range(20_000)}


def test_write_of_one_offset_costs_little_where_there_are_many_batches() -> None:
    so_far = tuple(StateBatch(2 * at, 2 * at, ACKNOWLEDGED, 1) for at in range(10_000))
    began = time.process_time()
    for at in range(100):
        so_far = combine_batches(so_far, [StateBatch(2 * at + 1, 2 * at + 1, ACKNOWLEDGED, 1)], -1)
    assert time.process_time() - began < 5
    assert so_far[0] == StateBatch(0, 200, ACKNOWLEDGED, 1)
