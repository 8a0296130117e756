"""The history of causes is bounded, tells who asked, and goes with its group."""

from pykbroker.protocol.messages.groups import JoinGroupRequest
from pykbroker.server.coordinators.cause_history import (
    MOST_CHARACTERS,
    MOST_REBALANCES,
    MOST_TRANSITIONS,
    NOBODY,
    CauseHistory,
    Origin,
    origin_of,
)
from pykbroker.server.runtime.causes import Handling, handling
from pykbroker.state_machine import Cause, CauseKind, CoordinatorContext


def test_a_step_is_kept_for_each_group_that_it_is_about() -> None:
    history = CauseHistory()

    step_of_two = [Cause("g", "m left"), Cause("h", "n left"), Cause("g", "rebalance", CauseKind.REBALANCE)]
    history.keep(0, step_of_two, NOBODY, 5)

    (step,) = history.transitions("g")
    assert (step.timestamp_ms, step.causes, step.rebalance) == (5, ("m left", "rebalance"), "m left")
    assert [each.causes for each in history.transitions("h")] == [("n left",)]
    assert history.rebalances("g") == history.transitions("g")
    assert history.rebalances("h") == ()


def test_the_history_is_bounded_in_steps_characters_and_groups() -> None:
    history = CauseHistory(most_keys=3)

    history.keep(0, [Cause("g", "x" * 10_000, CauseKind.REBALANCE)], NOBODY, 0)
    assert len(history.transitions("g")[0].causes[0]) == MOST_CHARACTERS
    history.keep(0, [Cause("g", "x" * 400)] * 1_000, NOBODY, 0)
    assert history.transitions("g")[1].causes == ("x" * 400,) * 3 + ("and 997 more",)
    for number in range(1, 100):
        history.keep(0, [Cause("g", str(number))], NOBODY, number)
    assert [each.causes for each in history.transitions("g")][-1] == ("99",)
    assert len(history.transitions("g")) == MOST_TRANSITIONS
    assert len(history.rebalances("g")) == 1 <= MOST_REBALANCES  # other steps do not push it out
    for group in "abc":
        history.keep(0, [Cause(group, "new")], NOBODY, 100)
    assert len(history) == 3
    assert history.transitions("g") == ()


def test_the_history_is_bounded_in_all_of_its_characters() -> None:
    history = CauseHistory(most_characters=100_000)
    origin = Origin(member_id="m" * 250, client_id="c" * 250)
    for number in range(1_000):
        history.keep(0, [Cause(f"g{number % 10}", "x" * 500, CauseKind.REBALANCE)] * 3, origin, number)
    groups = [f"g{number}" for number in range(10)]
    kept = [each for group in groups for each in (*history.transitions(group), *history.rebalances(group))]
    assert 0 < sum(len("".join(each.causes)) + len(each.rebalance) + 500 for each in kept) <= 100_000
    assert history.transitions("g9")
    history.forget(0)
    for group in groups:
        history.keep(0, [Cause(group, "new")], NOBODY, 0)
    assert len(history) == 10


def test_the_history_goes_with_its_group_and_with_its_partition() -> None:
    history = CauseHistory()
    for group, place in (("g", 0), ("h", 1), ("i", 1)):
        history.keep(place, [Cause(group, "new")], NOBODY, 0)

    history.keep(0, [Cause("g", "gone", CauseKind.END)], NOBODY, 1)
    assert history.transitions("g") == ()
    history.forget(1)
    assert len(history) == 0


def test_the_origin_is_the_request_its_client_and_its_number() -> None:
    request = JoinGroupRequest(group_id="g", session_timeout_ms=1, member_id="m", protocol_type="", protocols=[])
    context = CoordinatorContext(api_version=5, client_id="c" * 40_000, client_host="/10.0.0.1", principal="User:a")

    token = handling.set(Handling(17))
    try:
        origin = origin_of(request, context)
    finally:
        handling.reset(token)

    assert (origin.api, origin.member_id, origin.client_host) == ("JoinGroup", "m", "/10.0.0.1")
    assert (origin.principal, origin.request_number, len(origin.client_id)) == ("User:a", 17, 250)
