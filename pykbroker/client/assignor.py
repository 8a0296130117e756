"""The range assignor (`RangeAssignor`): of every topic, consecutive partitions for each member, in the members' order.

Static members are ordered by their instance id, so that a restart does not move partitions. Racks (KIP-881) are not
looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pykbroker.protocol.topic_partition import TopicPartition

RANGE = "range"


@dataclass(frozen=True, slots=True)
class Subscriber:
    member_id: str
    topics: Sequence[str]
    group_instance_id: str | None = None

    @property
    def order(self) -> tuple[bool, str]:
        return (self.group_instance_id is None, self.group_instance_id or self.member_id)


def range_assignment(
    subscribers: Sequence[Subscriber], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Return the partitions of each member id. Topics without partitions are given to nobody."""
    assignment: dict[str, list[TopicPartition]] = {subscriber.member_id: [] for subscriber in subscribers}
    for topic in sorted({topic for subscriber in subscribers for topic in subscriber.topics}):
        members = sorted((one for one in subscribers if topic in one.topics), key=lambda one: one.order)
        each, left_over = divmod(partition_counts.get(topic, 0), len(members))
        start = 0
        for index, member in enumerate(members):
            stop = start + each + (index < left_over)
            assignment[member.member_id] += [TopicPartition(topic, partition) for partition in range(start, stop)]
            start = stop
    return assignment
