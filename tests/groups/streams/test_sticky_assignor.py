"""The sticky assignor of tasks: what holds of every assignment, and Kafka's own assignments next to ours."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.groups.streams.java_collections import JavaPriorityQueue, in_order_of_computed_table, in_table_order
from pykbroker.groups.streams.sticky_assignor import MemberTasks, SubtopologyTasks, assign
from pykbroker.groups.streams.tasks import TasksTuple

from .record_task_assignments import Group, recorded

RECORDED = list(recorded("4.3"))
RECORDED_OF_4_4 = list(recorded("4.4"))


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_the_assignment_is_kafkas(number: int) -> None:
    group, kafkas = RECORDED[number]
    assert group.assigned() == kafkas


@pytest.mark.parametrize("number", range(len(RECORDED_OF_4_4)))
def test_the_assignment_is_that_of_kafka_4_4(number: int) -> None:
    group, kafkas = RECORDED_OF_4_4[number]
    assert group.assigned() == kafkas


def test_the_two_releases_assign_tasks_differently() -> None:
    older = [replace(group, release="4.3").assigned() for group, _ in RECORDED_OF_4_4]
    assert sum(one != kafkas for one, (_, kafkas) in zip(older, RECORDED_OF_4_4, strict=True)) > 20
    assert sum(bool(each.offsets) for group, _ in RECORDED_OF_4_4 for each in group.members.values()) > 100


@pytest.mark.parametrize("groups", [RECORDED, RECORDED_OF_4_4], ids=["4.3", "4.4"])
def test_there_is_a_recording_of_every_kind(groups: list[tuple[Group, dict[str, TasksTuple]]]) -> None:
    _check_kinds([group for group, _ in groups])


def _check_kinds(groups: list[Group]) -> None:
    assert {group.replicas for group in groups} >= {0, 1, 2}
    assert any(len(group.members) > 20 for group in groups)
    assert any(len(group.subtopologies) > 8 for group in groups)
    assert any(each.tasks.standby for group in groups for each in group.members.values())


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
subtopologies = st.dictionaries(names, st.builds(SubtopologyTasks, st.integers(1, 9), st.booleans()), max_size=5)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """A group whose members have what some earlier assignment gave them, or nothing."""
    processes = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    members = draw(st.dictionaries(names, st.sampled_from(processes), min_size=1, max_size=8))
    topology = draw(subtopologies)
    replicas = draw(st.integers(0, 3))
    group = Group(topology, {name: MemberTasks(process, TasksTuple()) for name, process in members.items()}, replicas)
    return group.after(group.assigned()) if draw(st.booleans()) else group


@given(groups(), subtopologies, st.integers(0, 3), st.booleans())
def test_what_holds_of_every_assignment(
    group: Group, topology: dict[str, SubtopologyTasks], replicas: int, is_of_4_4: bool
) -> None:
    target = assign(group.members, topology, replicas, is_of_4_4=is_of_4_4)
    assert target.keys() == group.members.keys()
    active = Counter((name, each) for tasks in target.values() for name, some in tasks.active.items() for each in some)
    wanted = {(name, each) for name, some in topology.items() for each in range(some.count)}
    assert active == dict.fromkeys(wanted, 1)
    in_process: Counter[tuple[str, str, int]] = Counter()
    for member_id, tasks in target.items():
        process = group.members[member_id].process_id
        for kind in (tasks.active, tasks.standby):
            in_process.update((process, name, each) for name, some in kind.items() for each in some)
    assert not in_process or max(in_process.values()) == 1, "a process has a task once"
    standby = Counter(
        (name, each) for tasks in target.values() for name, some in tasks.standby.items() for each in some
    )
    processes = len({each.process_id for each in group.members.values()})
    for name, some in topology.items():
        for each in range(some.count):
            assert standby[name, each] == (min(replicas, processes - 1) if some.is_stateful else 0)


@given(groups())
def test_an_assignment_that_nothing_has_changed_stays(group: Group) -> None:
    settled = group.after(group.assigned())
    if not group.replicas:
        assert settled.assigned() == {name: each.tasks for name, each in settled.members.items()}


def test_names_are_ordered_as_in_a_table_of_java() -> None:
    assert in_table_order(["b", "a", "Aa", "BB"]) == ["Aa", "BB", "a", "b"]
    assert in_table_order(["BB", "Aa"]) == ["BB", "Aa"], "in one slot in the order of insertion"
    assert in_table_order([]) == []


def test_a_table_that_computes_its_entries_puts_the_latest_first_and_grows_late() -> None:
    assert in_order_of_computed_table(["BB", "Aa"], 16) == ["Aa", "BB"], "in one slot the latest is first"
    assert in_order_of_computed_table([], 0) == []
    four = ["d", "c", "b", "a"]
    assert in_order_of_computed_table(four, 4) == ["d", "a", "b", "c"], "four fit into a table of four"
    assert in_order_of_computed_table([*four, "a"], 4) == ["a", "b", "c", "d"], "the next call makes it grow"


@given(st.lists(st.integers(0, 5)))
def test_a_queue_gives_the_lightest_first(weights: list[int]) -> None:
    queue = JavaPriorityQueue(float, weights)
    assert [queue.poll() for _ in range(len(queue))] == sorted(weights)
