"""Groups to assign partitions to: topics, members, and what an assignment must be like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pykbroker.groups.assignors import ASSIGNORS, MemberSubscription

Target = dict[str, dict[bytes, frozenset[int]]]


@dataclass(frozen=True)
class Topics:
    """A `TopicDescriber`. placed: the racks of each partition's replicas, where they are known."""

    counts: Mapping[bytes, int]
    placed: Mapping[tuple[bytes, int], frozenset[str]] = field(default_factory=dict)

    def partition_count(self, topic_id: bytes) -> int:
        return self.counts.get(topic_id, 0)

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        return self.placed.get((topic_id, partition), frozenset())


@dataclass(frozen=True)
class Group:
    topics: Topics
    members: Mapping[str, MemberSubscription]

    @property
    def is_homogeneous(self) -> bool:
        return len({member.topic_ids for member in self.members.values()}) <= 1

    def assigned(self, assignor: str) -> Target:
        return ASSIGNORS[assignor].assign(self.members, self.topics, self.is_homogeneous)

    def after(self, target: Target) -> Group:
        """The same group, which has this assignment now."""
        members = {
            member_id: replace(member, assignment=target.get(member_id, {}))
            for member_id, member in self.members.items()
        }
        return replace(self, members=members)

    def joined(self, **members: MemberSubscription) -> Group:
        return replace(self, members={**self.members, **members})

    def without(self, *member_ids: str) -> Group:
        members = {key: value for key, value in self.members.items() if key not in member_ids}
        return replace(self, members=members)

    @property
    def partitions(self) -> set[tuple[bytes, int]]:
        """Of every topic that anybody is subscribed to."""
        topic_ids = {topic_id for member in self.members.values() for topic_id in member.topic_ids}
        return {(topic_id, index) for topic_id in topic_ids for index in range(self.topics.partition_count(topic_id))}


def topic(number: int) -> bytes:
    return number.to_bytes(16, "big")


def homogeneous(members: int | Iterable[str], *counts: int) -> Group:
    """Members m000, m001, … (or these) of topics with so many partitions."""
    names = [f"m{number:03}" for number in range(members)] if isinstance(members, int) else list(members)
    topics = Topics({topic(number): count for number, count in enumerate(counts)})
    subscription = MemberSubscription(frozenset(topics.counts))
    return Group(topics, dict.fromkeys(names, subscription))


def owners(target: Target) -> dict[tuple[bytes, int], str]:
    return {
        (topic_id, index): member_id
        for member_id, topics in target.items()
        for topic_id, indexes in topics.items()
        for index in indexes
    }


def sizes(target: Target) -> dict[str, int]:
    return {member_id: sum(map(len, topics.values())) for member_id, topics in target.items()}


def ensure_valid(group: Group, target: Target) -> None:
    """Every partition has one owner, who is subscribed to it, and every member has its place."""
    assert set(target) == set(group.members)
    times = Counter(
        (topic_id, index) for topics in target.values() for topic_id, part in topics.items() for index in part
    )
    assert set(times.values()) <= {1}
    assert set(times) == group.partitions
    for member_id, topics in target.items():
        assert topics.keys() <= group.members[member_id].topic_ids
        assert all(topics.values())


def moved(group: Group, target: Target) -> int:
    """Partitions that leave a member which has them now."""
    now = owners(target)
    return sum(
        now.get((topic_id, index)) != member_id
        for member_id, member in group.members.items()
        for topic_id, indexes in member.assignment.items()
        for index in indexes
    )
