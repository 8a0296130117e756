"""Which requests a fault picks, by number and by chance; names and patterns."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.control.faults.match import Match
from pykbroker.control.faults.rule import Pick
from pykbroker.control.pattern import Pattern
from pykbroker.protocol.api_keys import ApiKey


def picked(pick: Pick, count: int = 12, seed: str = "0/x") -> list[int]:
    """The numbers of those that are picked."""
    taken: list[int] = []
    for number in range(1, count + 1):
        if pick.takes(number, len(taken), seed):
            taken.append(number)
    return taken


@pytest.mark.parametrize(
    ("pick", "numbers"),
    [
        (Pick(), list(range(1, 13))),
        (Pick(nth=3), [3]),
        (Pick(first=2), [1, 2]),
        (Pick(skip=3, first=2), [4, 5]),
        (Pick(times=3), [1, 2, 3]),
        (Pick(skip=10), [11, 12]),
        (Pick(every=4), [4, 8, 12]),
        (Pick(skip=1, every=4), [5, 9]),
        (Pick(every=3, times=2), [3, 6]),
        (Pick(every=3, first=7), [3, 6]),
    ],
)
def test_requests_are_picked_by_their_numbers(pick: Pick, numbers: list[int]) -> None:
    assert picked(pick) == numbers


def test_chance_is_the_same_for_one_seed_and_another_for_others() -> None:
    pick = Pick(chance=0.5)
    runs = {tuple(picked(pick, 100, f"{seed}/x")) for seed in range(20)}
    assert len(runs) == 20
    assert picked(pick, 100, "7/x") == picked(pick, 100, "7/x")
    assert all(25 <= len(run) <= 75 for run in runs)


@given(
    st.builds(
        Pick,
        nth=st.none() | st.integers(1, 5),
        skip=st.integers(0, 3),
        first=st.none() | st.integers(1, 5),
        times=st.none() | st.integers(1, 3),
        every=st.integers(1, 3),
    )
)
def test_what_is_over_picks_nothing_any_more(pick: Pick) -> None:
    taken = 0
    was_over = False
    for number in range(1, 20):
        was_over = was_over or pick.is_over(number - 1, taken)
        is_taken = pick.takes(number, taken, "0/x")
        assert not (was_over and is_taken)
        taken += is_taken


@pytest.mark.parametrize(
    ("pattern", "fits", "others"),
    [
        ("orders", ["orders"], ["orders2", "order", "Orders", ""]),
        ("orders-*", ["orders-", "orders-eu"], ["orders", "my-orders-eu"]),
        ("*", ["", "anything"], []),
        ("app-?", ["app-1"], ["app-", "app-12"]),
        ("[a]*", ["[a]b"], ["a", "ab"]),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_a_pattern_has_stars_and_question_marks_and_nothing_else(
    pattern: str, fits: list[str], others: list[str]
) -> None:
    assert all(map(Pattern(pattern).fits, fits))
    assert not any(map(Pattern(pattern).fits, others))
    assert Pattern(pattern).fits_any(frozenset(fits))
    assert not Pattern(pattern).fits_any(frozenset(others))


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    began = time.process_time()
    assert not Pattern("*a" * 100 + "b").fits("a" * 30_000)
    assert time.process_time() - began < 1


def test_without_a_client_id_neither_nodes_nor_the_test_itself_are_meant() -> None:
    for own in ("pykbroker-testing", "broker-1", "raft-client-12"):
        assert not Match().fits_header(ApiKey.FETCH, own)
        assert Match(client_id=Pattern("*")).fits_header(ApiKey.FETCH, own)
    for client_id in (None, "", "broker-x", "my-broker-1", "app"):
        assert Match().fits_header(ApiKey.FETCH, client_id)


def test_a_match_asks_for_api_client_and_topic() -> None:
    match = Match(ApiKey.PRODUCE, Pattern("app-*"), Pattern("orders"))
    assert match.fits_header(ApiKey.PRODUCE, "app-1")
    assert not match.fits_header(ApiKey.FETCH, "app-1")
    assert not match.fits_header(ApiKey.PRODUCE, "other")
    assert not match.fits_header(ApiKey.PRODUCE, None)
    assert match.fits_topics(frozenset(("x", "orders")))
    assert not match.fits_topics(frozenset(("x",)))
