"""Deadlines that move are due when the last call said, whatever the heap still holds of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pykbroker.groups.common.deadlines import Deadlines, SessionTimeout

MEMBERS = ("a", "b", "c")
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("schedule"), st.sampled_from(MEMBERS), st.integers(0, 20)),
        st.tuples(st.just("cancel"), st.sampled_from(MEMBERS), st.just(0)),
        st.tuples(st.just("pop"), st.just(""), st.integers(0, 20)),
        st.tuples(st.just("trial"), st.sampled_from(MEMBERS), st.integers(0, 20)),
    ),
    max_size=40,
)


@given(CHANGES)
def test_deadlines_are_those_of_a_plain_table(changes: list[tuple[str, str, int]]) -> None:
    deadlines, table = Deadlines(), dict[str, int]()
    for what, member, at_ms in changes:
        timeout = SessionTimeout("g", member)
        if what == "schedule":
            deadlines.schedule(timeout, at_ms)
            table[member] = at_ms
        elif what == "cancel":
            deadlines.cancel(timeout)
            table.pop(member, None)
        elif what == "trial":
            deadlines.begin_trial()
            deadlines.schedule(timeout, at_ms)
            deadlines.end_trial(is_kept=False)
        else:
            popped = deadlines.pop_due(at_ms)
            first_ms = min(table.values(), default=None)
            if first_ms is None or first_ms > at_ms:
                assert popped is None
            else:
                assert isinstance(popped, SessionTimeout)
                assert table.pop(popped.member_id) == first_ms
        assert deadlines.next_ms() == min(table.values(), default=None)
        assert len(deadlines) == len(table)
        assert {each for each in MEMBERS if SessionTimeout("g", each) in deadlines} == set(table)


def test_deadlines_of_the_same_time_are_due_in_the_order_of_the_calls() -> None:
    deadlines = Deadlines()
    deadlines.schedule(SessionTimeout("g", "a"), 5)
    deadlines.schedule(SessionTimeout("g", "b"), 10)
    deadlines.schedule(SessionTimeout("g", "a"), 10)
    assert deadlines.pop_due(10) == SessionTimeout("g", "b")
    assert deadlines.pop_due(10) == SessionTimeout("g", "a")
    assert deadlines.pop_due(10) is None
