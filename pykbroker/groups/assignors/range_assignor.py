"""`range`: each topic is cut into ranges of neighbouring partitions, one per member, in the same order for all topics.

Members with the same subscriptions get the same partition numbers of topics with equally many partitions, so that these
can be joined. The assignor does not look at what members have already; the order of members keeps the ranges in their
places. The result is that of Kafka's `RangeAssignor`, partition by partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .model import MemberSubscription, TopicDescriber
from .order import static_members_first


class RangeAssignor:
    name = "range"

    def assign(
        self, members: Mapping[str, MemberSubscription], topics: TopicDescriber, is_homogeneous: bool
    ) -> dict[str, dict[bytes, frozenset[int]]]:
        ordered = static_members_first(members)
        target: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in ordered}
        for topic_id, subscribers in _subscribers(members, ordered, is_homogeneous).items():
            ranges = _ranges(topics.partition_count(topic_id), len(subscribers))
            for member_id, partitions in zip(subscribers, ranges, strict=False):
                target[member_id][topic_id] = frozenset(partitions)
        return target


def _subscribers(
    members: Mapping[str, MemberSubscription], ordered: Sequence[str], is_homogeneous: bool
) -> Mapping[bytes, Sequence[str]]:
    """The subscribed members by topic. The order of topics depends on their ids only."""
    if is_homogeneous and ordered:
        return dict.fromkeys(sorted(members[ordered[0]].topic_ids), ordered)
    subscribers: dict[bytes, list[str]] = {}
    for member_id in ordered:
        for topic_id in sorted(members[member_id].topic_ids):
            subscribers.setdefault(topic_id, []).append(member_id)
    return subscribers


def _ranges(partition_count: int, member_count: int) -> Iterator[range]:
    """A range for each member that gets partitions. Where they cannot be divided evenly, the first members get one
    more."""
    quota, extras = divmod(partition_count, member_count)
    start = 0
    for number in range(member_count):
        end = start + quota + (number < extras)
        if start == end:
            return
        yield range(start, end)
        start = end
