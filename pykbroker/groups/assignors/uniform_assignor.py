"""`uniform`: every member gets equally many partitions, and keeps what it has as far as that allows.

Where all members have the same subscriptions, as in most groups, each gets its quota: the partitions divided by the
members, and one more for some. Balance goes before stickiness, and stickiness before racks: a member that has too many
gives up partitions without a replica in its rack first, and a free partition goes to a member in the rack of a replica
if one has room. `heterogeneous` is for groups whose subscriptions differ.

Kafka's `UniformAssignor` gives the same numbers of partitions. It moves more of them, and does not look at racks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from .heterogeneous import HeterogeneousAssignment
from .model import MemberSubscription, TopicDescriber, TopicPartition
from .order import by_member_id
from .target import merged


class UniformAssignor:
    name = "uniform"

    def assign(
        self, members: Mapping[str, MemberSubscription], topics: TopicDescriber, is_homogeneous: bool
    ) -> dict[str, dict[bytes, frozenset[int]]]:
        if not members:
            return {}
        if not is_homogeneous:
            return HeterogeneousAssignment(members, topics).build()
        return _HomogeneousAssignment(members, topics).build()


class _HomogeneousAssignment:
    def __init__(self, members: Mapping[str, MemberSubscription], topics: TopicDescriber) -> None:
        self._members = members
        self._ordered = by_member_id(members)
        self._topics = topics
        topic_ids = members[self._ordered[0]].topic_ids
        self._partition_counts = {topic_id: topics.partition_count(topic_id) for topic_id in sorted(topic_ids)}
        self._racks = {member_id: member.rack_id for member_id, member in members.items() if member.rack_id}
        self._kept: dict[str, list[TopicPartition]] = {}
        self._received: dict[str, list[TopicPartition]] = {member_id: [] for member_id in self._ordered}
        self._room: dict[str, int] = {}

    def build(self) -> dict[str, dict[bytes, frozenset[int]]]:
        self._keep()
        self._set_quotas()
        unassigned = self._unassigned()
        if self._racks:
            unassigned = self._fill_within_racks(unassigned)
        self._fill(unassigned)
        return {
            member_id: merged(self._members[member_id].assignment, self._kept[member_id] + self._received[member_id])
            for member_id in self._ordered
        }

    def _keep(self) -> None:
        """Take what members have and may have at all. Where two have the same partition, the first keeps it."""
        taken: set[TopicPartition] = set()
        for member_id in self._ordered:
            kept = [
                (topic_id, partition)
                for topic_id, partitions in sorted(self._members[member_id].assignment.items())
                for partition in sorted(partitions)
                if partition < self._partition_counts.get(topic_id, 0) and (topic_id, partition) not in taken
            ]
            taken.update(kept)
            self._kept[member_id] = kept

    def _set_quotas(self) -> None:
        """Give the quotas that are one larger to members that have more than the quota, before others."""
        quota, extras = divmod(sum(self._partition_counts.values()), len(self._ordered))
        largest_first = sorted(self._ordered, key=lambda member_id: len(self._kept[member_id]) <= quota)
        for number, member_id in enumerate(largest_first):
            room = quota + (number < extras) - len(self._kept[member_id])
            if room < 0:
                self._kept[member_id] = self._best(member_id, room)
            self._room[member_id] = max(room, 0)

    def _best(self, member_id: str, surplus: int) -> list[TopicPartition]:
        """The partitions that the member keeps. It gives up partitions of other racks first, then those of topics that
        it has most of.

        surplus: how many it has to give up, as a number below zero.
        """
        rack = self._racks.get(member_id)
        numbers: dict[bytes, int] = {}
        ranked = []
        for topic_id, partition in self._kept[member_id]:
            numbers[topic_id] = number = numbers.get(topic_id, 0) + 1
            is_elsewhere = rack is not None and rack not in self._topics.racks(topic_id, partition)
            ranked.append((is_elsewhere, number, topic_id, partition))
        return [(topic_id, partition) for _, _, topic_id, partition in sorted(ranked)[:surplus]]

    def _unassigned(self) -> list[TopicPartition]:
        taken = {each for kept in self._kept.values() for each in kept}
        return [
            (topic_id, partition)
            for topic_id, count in self._partition_counts.items()
            for partition in range(count)
            if (topic_id, partition) not in taken
        ]

    def _fill_within_racks(self, unassigned: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Give partitions to members in the rack of a replica, those with the fewest such racks first. Returns the
        partitions that are left."""
        rooms: dict[str, deque[str]] = {}
        for member_id in self._ordered:
            if member_id in self._racks and self._room[member_id]:
                rooms.setdefault(self._racks[member_id], deque()).append(member_id)
        sizes = {rack: sum(self._room[member_id] for member_id in rooms[rack]) for rack in rooms}
        choices = [(sorted(self._topics.racks(*each) & sizes.keys()), each) for each in unassigned]
        left = []
        for racks, each in sorted(choices, key=lambda choice: len(choice[0])):
            rack = max(racks, key=sizes.__getitem__, default=None)
            if rack is None or not sizes[rack]:
                left.append(each)
                continue
            sizes[rack] -= 1
            self._give_next(rooms[rack], each)
        return left

    def _fill(self, unassigned: Iterable[TopicPartition]) -> None:
        """Give partitions to members in turns, so that every member gets some of each topic."""
        waiting = deque(member_id for member_id in self._ordered if self._room[member_id])
        for each in unassigned:
            self._give_next(waiting, each)
        assert not waiting

    def _give_next(self, waiting: deque[str], partition: TopicPartition) -> None:
        member_id = waiting.popleft()
        self._received[member_id].append(partition)
        self._room[member_id] -= 1
        if self._room[member_id]:
            waiting.append(member_id)
