"""A seed plays the same faults again, whatever the cluster says, and later rounds leave earlier ones as they were."""

from __future__ import annotations

import itertools

import pytest

from .contents import Contents, SecondReading
from .plan import (
    ABSENCE,
    LONGEST_ABSENCE_S,
    NETWORK_FAULTS,
    PROCESS_FAULTS,
    ROLES,
    SESSION_TIMEOUT_S,
    PlannedFault,
    planned_faults,
)

KINDS = (*PROCESS_FAULTS, *NETWORK_FAULTS)
HOUR_S = 3600.0


def planned(count: int, *, seed: int = 1, run_s: float = 300.0) -> list[PlannedFault]:
    return list(itertools.islice(planned_faults(KINDS, seed, run_s), count))


def test_a_seed_plans_the_same_faults_again_and_another_one_others() -> None:
    assert planned(100) == planned(100)
    assert planned(100) != planned(100, seed=2)


def test_every_turn_has_each_kind_and_three_turns_have_each_kind_with_each_role() -> None:
    faults = planned(3 * len(KINDS))
    for turn in range(3):
        assert {each.kind for each in faults[turn * len(KINDS) :][: len(KINDS)]} == set(KINDS)
    assert {(each.kind, each.role) for each in faults} == set(itertools.product(KINDS, ROLES))


def test_a_long_freeze_outlasts_the_session_and_a_short_one_does_not() -> None:
    for each in planned(200):
        if each.kind == "long freeze":
            assert each.lasts_s > SESSION_TIMEOUT_S
        if each.kind == "short freeze":
            assert each.lasts_s < SESSION_TIMEOUT_S


def test_a_node_is_away_for_minutes_in_a_run_of_an_hour_and_never_in_a_short_one() -> None:
    absences = [each for each in planned(200, run_s=HOUR_S) if each.kind == ABSENCE]
    assert len(absences) == 200 // (3 * len(KINDS) + 1)
    assert all(60 <= each.lasts_s <= LONGEST_ABSENCE_S for each in absences)
    assert ABSENCE not in {each.kind for each in planned(200)}


def test_whom_a_fault_hits_depends_on_who_has_the_role_and_the_following_faults_do_not() -> None:
    fault = PlannedFault("kill -9", "leader", 0.7, 1.0, True)
    assert fault.choose([1, 2, 3]) == 3
    assert fault.choose([1, 2]) == 2
    assert fault.choose([2]) == 2


def rounds() -> list[Contents]:
    """Two rounds of one partition: offsets 0 and 1, then 3 and 5."""
    first, second = Contents({}), Contents({"plain-0": 3})
    first.add({"plain-0": [(0, "v1.1"), (1, "v1.2")]})
    first.close({"plain-0": 3})
    second.add({"plain-0": [(3, "v2.1")]})
    second.add({"plain-0": [(5, "v2.2")]})
    second.close({"plain-0": 6})
    return [first, second]


def differences(*records: tuple[int, str]) -> list[str]:
    reading = SecondReading(rounds())
    for record in records:
        reading.add({"plain-0": [record]})
    return reading.differences()


def test_records_that_stay_as_they_were_are_no_difference() -> None:
    assert differences((0, "v1.1"), (1, "v1.2"), (3, "v2.1"), (5, "v2.2")) == []


@pytest.mark.parametrize(
    ("records", "number"),
    [
        (((0, "v1.1"), (3, "v2.1"), (5, "v2.2")), 1),  # one is lost
        (((0, "v1.1"), (1, "v9.9"), (3, "v2.1"), (5, "v2.2")), 1),  # one is another
        (((0, "v1.1"), (1, "v1.2"), (2, "v1.3"), (3, "v2.1"), (5, "v2.2")), 1),  # one came later
        (((0, "v1.1"), (1, "v1.2"), (3, "v2.1"), (4, "v2.2")), 2),  # one has another offset
        (((0, "v1.1"), (1, "v1.2")), 2),  # all of a round are lost
    ],
)
def test_a_round_that_is_not_as_it_was_is_named(records: tuple[tuple[int, str], ...], number: int) -> None:
    (difference,) = differences(*records)
    assert f"of round {number} " in difference


def test_records_behind_the_last_round_are_named() -> None:
    assert differences((0, "v1.1"), (1, "v1.2"), (3, "v2.1"), (5, "v2.2"), (6, "v1.1")) == [
        "plain-0 has records behind the end of the last round"
    ]
