"""Ranges of offsets against a set of offsets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pykbroker.control.audit.offset_ranges import MOST_RANGES, OffsetRanges

OFFSETS = st.integers(0, 60)
RANGES = st.lists(st.tuples(OFFSETS, OFFSETS), max_size=30)


@given(RANGES, OFFSETS, OFFSETS)
def test_the_first_missing_offsets_are_those_of_a_set(ranges: list[tuple[int, int]], first: int, end: int) -> None:
    kept, offsets = OffsetRanges(), set[int]()
    for low, high in ranges:
        kept.add(low, high)
        offsets |= set(range(low, high))
    missing = [offset for offset in range(first, end) if offset not in offsets]
    found = kept.first_missing(first, end)
    if not missing:
        assert found is None
        return
    begin = missing[0]
    stop = next((offset for offset in range(begin, end) if offset in offsets), end)
    assert found == (begin, stop)


def test_many_ranges_stay_few_and_nothing_that_was_added_is_missing() -> None:
    kept = OffsetRanges()
    for offset in range(0, 100_000, 2):
        kept.add(offset, offset + 1)
    assert all(kept.first_missing(offset, offset + 1) is None for offset in range(0, 100_000, 2))
    assert kept.first_missing(99_997, 99_998) == (99_997, 99_998)
    assert sum(kept.first_missing(offset, offset + 1) is not None for offset in range(1, 99_999, 2)) == MOST_RANGES - 1
