"""What `uniform` and `range` give, as examples and as properties of any group."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.groups.assignors import ASSIGNORS, MemberSubscription
from tests.examples import examples

from .cases import Group, Topics, ensure_valid, homogeneous, moved, owners, sizes, topic

T0, T1, T2 = map(topic, range(3))
RACKS = ("a", "b", "c")
any_assignor = pytest.mark.parametrize("assignor", ["uniform", "range"])


@st.composite
def groups(draw: st.DrawFn, is_homogeneous: bool | None = None, has_racks: bool = True) -> Group:
    """Any small group with any assignment from before, which need not fit its subscriptions any more."""
    counts = {topic(number): count for number, count in enumerate(draw(st.lists(st.integers(1, 9), max_size=4)))}
    names = draw(st.lists(st.text("abcé𐐷￰", min_size=1, max_size=3), min_size=1, max_size=6, unique=True))
    everything = [(topic_id, index) for topic_id, count in counts.items() for index in range(count + 2)]
    before: dict[str, dict[bytes, set[int]]] = {name: {} for name in names}
    for each in everything:
        owner = draw(st.sampled_from([None, *names]))
        if owner is not None:
            before[owner].setdefault(each[0], set()).add(each[1])
    subscription = st.frozensets(st.sampled_from(sorted(counts)) if counts else st.nothing())
    if is_homogeneous is None:
        is_homogeneous = draw(st.booleans())
    shared = draw(subscription)
    rack = st.sampled_from([None, *RACKS]) if has_racks else st.none()
    members = {
        name: MemberSubscription(
            shared if is_homogeneous else draw(subscription),
            rack_id=draw(rack),
            instance_id=draw(st.sampled_from([None, f"i-{name}"])),
            assignment={topic_id: frozenset(part) for topic_id, part in before[name].items()},
        )
        for name in names
    }
    placed = {each: frozenset(draw(st.sets(st.sampled_from(RACKS)))) for each in everything} if has_racks else {}
    return Group(Topics(counts, placed), members)


# Properties of any group


@any_assignor
@given(group=groups())
@examples(60)
def test_every_partition_has_one_owner_who_is_subscribed_to_it(assignor: str, group: Group) -> None:
    ensure_valid(group, group.assigned(assignor))


@any_assignor
@given(group=groups(), data=st.data())
@examples(40)
def test_the_same_group_gets_the_same_assignment_whatever_the_order_of_its_members(
    assignor: str, group: Group, data: st.DataObject
) -> None:
    shuffled = replace(group, members=dict(data.draw(st.permutations(list(group.members.items())))))
    assert shuffled.assigned(assignor) == group.assigned(assignor)


@any_assignor
@given(group=groups())
@examples(60)
def test_a_group_that_does_not_change_keeps_its_assignment(assignor: str, group: Group) -> None:
    target = group.assigned(assignor)
    assert group.after(target).assigned(assignor) == target


@given(group=groups(is_homogeneous=True))
@examples(60)
def test_uniform_is_balanced_within_one_where_subscriptions_are_equal(group: Group) -> None:
    counts = sizes(group.assigned("uniform")).values()
    assert max(counts) - min(counts) <= 1


@given(group=groups(is_homogeneous=True))
@examples(60)
def test_uniform_moves_only_what_balance_demands(group: Group) -> None:
    """Each keeps all it has up to its share; whoever has more than that gives up the rest, and nothing else moves."""
    quota, extras = divmod(len(group.partitions), len(group.members))
    kept = sorted((len(_usable(group, name)) for name in group.members), reverse=True)
    demanded = sum(max(0, count - quota - (number < extras)) for number, count in enumerate(kept))
    target = owners(group.assigned("uniform"))
    actual = sum(target[each] != name for name in group.members for each in _usable(group, name))
    assert actual == demanded


def _usable(group: Group, name: str) -> set[tuple[bytes, int]]:
    member = group.members[name]
    return {
        (topic_id, index)
        for topic_id, indexes in member.assignment.items()
        if topic_id in member.topic_ids
        for index in indexes
        if index < group.topics.partition_count(topic_id)
    }


@given(group=groups())
@examples(60)
def test_uniform_gives_equal_numbers_whether_it_knows_that_subscriptions_are_equal_or_not(group: Group) -> None:
    target = ASSIGNORS["uniform"].assign(group.members, group.topics, False)
    ensure_valid(group, target)
    assert sorted(sizes(target).values()) == sorted(sizes(group.assigned("uniform")).values())


@given(
    subscriptions=st.lists(st.frozensets(st.sampled_from([T0, T1, T2])), min_size=1, max_size=4),
    counts=st.lists(st.integers(1, 2), min_size=3, max_size=3),
    data=st.data(),
)
@examples(40)
def test_uniform_finds_the_most_even_assignment_there_is(
    subscriptions: list[frozenset[bytes]], counts: list[int], data: st.DataObject
) -> None:
    topics = Topics(dict(zip([T0, T1, T2], counts, strict=True)))
    members = {f"m{number}": MemberSubscription(topic_ids) for number, topic_ids in enumerate(subscriptions)}
    group = Group(topics, members)
    choices = [[name for name, member in members.items() if each[0] in member.topic_ids] for each in group.partitions]
    before = dict(zip(group.partitions, (data.draw(st.sampled_from(choice)) for choice in choices), strict=True))
    held: dict[str, dict[bytes, frozenset[int]]] = {name: {} for name in members}
    for (topic_id, index), name in before.items():
        held[name][topic_id] = held[name].get(topic_id, frozenset()) | {index}
    best = min(_unevenness(chosen) for chosen in product(*choices))
    assert _unevenness(owners(group.after(held).assigned("uniform")).values()) == best


def _unevenness(chosen: object) -> int:
    names = list(chosen)  # type: ignore[call-overload]
    return sum(names.count(name) ** 2 for name in set(names))


# Examples


def test_range_gives_each_member_the_same_partitions_of_topics_with_equally_many() -> None:
    target = homogeneous(["b", "a", "c"], 6, 6).assigned("range")
    assert target == {
        "a": {T0: frozenset({0, 1}), T1: frozenset({0, 1})},
        "b": {T0: frozenset({2, 3}), T1: frozenset({2, 3})},
        "c": {T0: frozenset({4, 5}), T1: frozenset({4, 5})},
    }


def test_range_puts_static_members_first_in_the_order_of_their_instances() -> None:
    group = homogeneous(["a", "b", "c"], 3)
    members = {
        **group.members,
        "c": replace(group.members["c"], instance_id="i1"),
        "b": replace(group.members["b"], instance_id="i2"),
    }
    target = replace(group, members=members).assigned("range")
    assert target == {"c": {T0: frozenset({0})}, "b": {T0: frozenset({1})}, "a": {T0: frozenset({2})}}


def test_range_leaves_members_without_partitions_where_there_are_not_enough() -> None:
    assert homogeneous(["a", "b", "c"], 2).assigned("range") == {"a": {T0: {0}}, "b": {T0: {1}}, "c": {}}


def test_a_member_that_joins_takes_its_share_and_nothing_else_moves() -> None:
    group = homogeneous(3, 12)
    group = group.after(group.assigned("uniform")).joined(new=MemberSubscription(frozenset({T0})))
    target = group.assigned("uniform")
    assert set(sizes(target).values()) == {3}
    assert moved(group, target) == 3


def test_what_a_member_leaves_behind_is_shared_and_nothing_else_moves() -> None:
    group = homogeneous(4, 12)
    group = group.after(group.assigned("uniform")).without("m001")
    target = group.assigned("uniform")
    assert set(sizes(target).values()) == {4}
    assert moved(group, target) == 0


def test_uniform_gives_every_member_a_part_of_each_topic() -> None:
    target = homogeneous(3, 3, 3).assigned("uniform")
    assert all(len(topics) == 2 for topics in target.values())


def test_balance_goes_along_chains_of_members_with_different_subscriptions() -> None:
    """9, 10 and 11: each two that share a topic are even enough, and yet two moves make it 10, 10 and 10."""
    t0, t1 = frozenset(range(14)), frozenset(range(16))
    members = {
        "m1": MemberSubscription(frozenset({T0}), assignment={T0: t0 - frozenset(range(5))}),
        "m2": MemberSubscription(frozenset({T0, T1}), assignment={T0: frozenset(range(5)), T1: frozenset(range(5))}),
        "m3": MemberSubscription(frozenset({T1}), assignment={T1: t1 - frozenset(range(5))}),
    }
    group = Group(Topics({T0: len(t0), T1: len(t1)}), members)
    target = group.assigned("uniform")
    ensure_valid(group, target)
    assert sizes(target) == {"m1": 10, "m2": 10, "m3": 10}
    assert moved(group, target) == 2


def test_uniform_prefers_members_in_the_rack_of_a_replica() -> None:
    group = homogeneous(3, 9)
    placed = {(T0, index): frozenset({RACKS[index // 3]}) for index in range(9)}
    members = {
        name: replace(member, rack_id=rack) for (name, member), rack in zip(group.members.items(), "cab", strict=True)
    }
    target = Group(Topics({T0: 9}, placed), members).assigned("uniform")
    assert target == {"m001": {T0: {0, 1, 2}}, "m002": {T0: {3, 4, 5}}, "m000": {T0: {6, 7, 8}}}


def test_a_member_gives_up_the_partitions_of_other_racks() -> None:
    placed = {(T0, index): frozenset({"ab"[index % 2]}) for index in range(6)}
    subscription = MemberSubscription(frozenset({T0}), rack_id="a")
    group = Group(
        Topics({T0: 6}, placed),
        {"old": replace(subscription, assignment={T0: frozenset(range(6))}), "new": replace(subscription, rack_id="b")},
    )
    assert group.assigned("uniform") == {"old": {T0: {0, 2, 4}}, "new": {T0: {1, 3, 5}}}


def test_racks_never_cost_balance() -> None:
    placed = {(T0, index): frozenset({"a"}) for index in range(4)}
    subscription = MemberSubscription(frozenset({T0}))
    members = {"m1": replace(subscription, rack_id="a"), "m2": replace(subscription, rack_id="b")}
    assert sizes(Group(Topics({T0: 4}, placed), members).assigned("uniform")) == {"m1": 2, "m2": 2}


@any_assignor
def test_a_group_without_topics_or_members_has_nothing(assignor: str) -> None:
    assert homogeneous([], 3).assigned(assignor) == {}
    assert homogeneous(["a"]).assigned(assignor) == {"a": {}}
