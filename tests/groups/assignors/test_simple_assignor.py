"""The assignor of share groups, next to Apache Kafka's own, recorded by `record_sharing`, and for any group."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.groups.assignors.model import Assignment
from pykbroker.groups.assignors.simple_assignor import SharingMember, assign

from .record_sharing import ShareGroupCase, changed, new_case, recorded

RECORDINGS = list(recorded())


def _told(target: dict[str, Assignment]) -> dict[str, dict[bytes, frozenset[int]]]:
    """Java leaves an empty set of a topic behind where all of its partitions were taken away."""
    return {
        member_id: {topic_id: partitions for topic_id, partitions in topics.items() if partitions}
        for member_id, topics in target.items()
    }


def test_there_is_a_recording_of_every_kind() -> None:
    kinds = {group.is_homogeneous for group, _ in RECORDINGS}
    assert kinds == {True, False}
    assert max(len(group.members) for group, _ in RECORDINGS) > 64
    assert any(any(member.assignment for member in group.members.values()) for group, _ in RECORDINGS)


@pytest.mark.parametrize("number", range(len(RECORDINGS)))
def test_members_get_what_kafka_gives_them(number: int) -> None:
    group, kafkas = RECORDINGS[number]
    assert _told(group.assigned()) == _told(kafkas)


@given(st.integers(0, 2**32), st.integers(0, 6))
def test_every_assignable_partition_has_members_and_each_is_subscribed(seed: int, changes: int) -> None:
    random = Random(seed)
    group = new_case(random)
    for _ in range(changes):
        group = changed(group.after(group.assigned()), random)
    target = group.assigned()
    assert target.keys() == group.members.keys()
    held = Counter((topic_id, index) for topics in target.values() for topic_id in topics for index in topics[topic_id])
    subscribed = {topic_id for member in group.members.values() for topic_id in member.topic_ids}
    wanted = {(topic_id, index) for topic_id in subscribed for index in group.assignable[topic_id]}
    assert wanted <= held.keys()
    for member_id, topics in target.items():
        gained = topics.keys() - group.members[member_id].assignment.keys()
        assert gained <= set(group.members[member_id].topic_ids)


@given(st.integers(0, 2**32))
def test_an_assignment_that_is_good_stays(seed: int) -> None:
    random = Random(seed)
    group = new_case(random)
    first = group.assigned()
    assert _told(group.after(first).assigned()) == _told(first)


def test_members_share_a_partition_where_there_are_more_of_them() -> None:
    topic_id = b"t" * 16
    members = {f"m{number}": SharingMember((topic_id,)) for number in range(5)}
    target = assign(members, {topic_id: frozenset({0, 1})}, is_homogeneous=True)
    assert sorted(len(topics[topic_id]) for topics in target.values()) == [1, 1, 1, 1, 2]


def test_nobody_has_anything_of_topics_that_are_not_there() -> None:
    assert assign({"m": SharingMember(())}, {}, is_homogeneous=True) == {"m": {}}
    assert ShareGroupCase({}, {}, {}).assigned() == {}
