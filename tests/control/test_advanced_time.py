"""The advanced time of a scope, against a reader who asks each thing for its age."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pykbroker.control.clocks.advanced_time import MOST_ADVANCES, AdvancedTime

NOW_MS = 1_000_000
moments = st.integers(0, 2000)


@given(st.lists(st.tuples(moments, st.integers(1, 3000)), max_size=6), moments, st.integers(0, 5000), moments)
def test_the_time_tells_what_is_over(advances: list[tuple[int, int]], later: int, limit_ms: int, stamped: int) -> None:
    time, made = AdvancedTime(), sorted(advances)
    for at, by_ms in made:
        time.advance(by_ms, NOW_MS + at)
    now_ms = NOW_MS + 2000 + later
    timestamp_ms = NOW_MS + stamped
    age_ms = now_ms - timestamp_ms + sum(by_ms for at, by_ms in made if NOW_MS + at >= timestamp_ms)
    is_over = now_ms - timestamp_ms >= limit_ms or age_ms >= limit_ms
    assert (time.reckon(now_ms, limit_ms) - limit_ms >= timestamp_ms) is is_over
    assert AdvancedTime(time.advances).reckon(now_ms, limit_ms) == time.reckon(now_ms, limit_ms)


@given(st.integers(0, 10**15), st.integers(0, 2**63 - 1))
def test_without_an_advance_it_is_as_late_as_the_clock_says(now_ms: int, limit_ms: int) -> None:
    assert AdvancedTime().reckon(now_ms, limit_ms) == now_ms


def test_of_very_many_advances_none_is_lost() -> None:
    time = AdvancedTime()
    for _ in range(3 * MOST_ADVANCES):
        time.advance(10, NOW_MS)
    assert time.total_ms == 30 * MOST_ADVANCES
    assert time.reckon(NOW_MS + 1, time.total_ms) == NOW_MS + time.total_ms


def test_a_wall_clock_that_was_put_back_does_not_undo_an_advance() -> None:
    time = AdvancedTime()
    time.advance(1000, NOW_MS)
    time.advance(1000, NOW_MS - 500)
    assert time.reckon(NOW_MS + 1, 2000) - 2000 == NOW_MS
