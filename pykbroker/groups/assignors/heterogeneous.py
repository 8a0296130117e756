"""`uniform` for a group whose members' subscriptions differ.

Members keep what they have. Each other partition goes to the subscriber of its topic that has fewest partitions. Then
partitions move until no move makes the numbers more even: from a member to one that has at least two fewer, directly or
through other members (m1 gives one to m2, and m2 gives another one to m3). Where no such chain is left, no other
assignment is more even; Kafka's `UniformHeterogeneousAssignmentBuilder` looks at direct moves only.

Racks decide between members that have equally few partitions, and between partitions that may move.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from .model import MemberSubscription, TopicDescriber
from .order import by_member_id
from .target import merged

Heap = list[tuple[int, int]]
"""An entry (number of partitions, member) for each member. A number may be out of date, and is too small then."""
Move = tuple[int, bytes, int]
"""Giver, topic and taker of one partition."""


class HeterogeneousAssignment:
    """Members are indexes into `_ordered`; the lower index decides where nothing else does."""

    def __init__(self, members: Mapping[str, MemberSubscription], topics: TopicDescriber) -> None:
        self._ordered = by_member_id(members)
        self._members = [members[member_id] for member_id in self._ordered]
        self._topics = topics
        self._racks = [member.rack_id for member in self._members]
        self._has_racks = any(self._racks)
        self._subscribers: dict[bytes, list[int]] = {}
        for index, member in enumerate(self._members):
            for topic_id in sorted(member.topic_ids):
                self._subscribers.setdefault(topic_id, []).append(index)
        self._partition_counts = {topic_id: topics.partition_count(topic_id) for topic_id in sorted(self._subscribers)}
        self._owned: list[dict[bytes, set[int]]] = [{} for _ in self._members]
        self._sizes = [0] * len(self._members)

    def build(self) -> dict[str, dict[bytes, frozenset[int]]]:
        unassigned = self._keep()
        for topic_id in self._topics_with_least_choice_last():
            self._hand_out(topic_id, unassigned[topic_id])
        self._balance()
        return {
            member_id: merged(
                self._members[index].assignment,
                [(topic_id, each) for topic_id, owned in self._owned[index].items() for each in owned],
            )
            for index, member_id in enumerate(self._ordered)
        }

    # Keeping and handing out

    def _keep(self) -> dict[bytes, list[int]]:
        """Take what members have and may keep. Returns the partitions of each topic that no member has."""
        unassigned = {topic_id: dict.fromkeys(range(count)) for topic_id, count in self._partition_counts.items()}
        for index, member in enumerate(self._members):
            for topic_id, partitions in sorted(member.assignment.items()):
                if topic_id not in member.topic_ids:
                    continue
                for partition in sorted(partitions):
                    if partition in unassigned[topic_id]:
                        del unassigned[topic_id][partition]
                        self._add(index, topic_id, partition)
        return {topic_id: list(partitions) for topic_id, partitions in unassigned.items()}

    def _topics_with_least_choice_last(self) -> list[bytes]:
        """The topics in Kafka's order: most partitions per subscriber first, then fewest subscribers."""

        def key(topic_id: bytes) -> tuple[float, int, bytes]:
            count = len(self._subscribers[topic_id])
            return (-self._partition_counts[topic_id] / count, count, topic_id)

        return sorted(self._subscribers, key=key)

    def _hand_out(self, topic_id: bytes, partitions: Sequence[int]) -> None:
        subscribers = self._subscribers[topic_id]
        smallest = [(self._sizes[index], index) for index in subscribers]
        heapq.heapify(smallest)
        by_rack = self._by_rack(subscribers)
        for partition in partitions:
            size, index = self._first(smallest)
            if self._has_racks:
                index = self._in_rack(self._topics.racks(topic_id, partition), by_rack, size, index)
            self._add(index, topic_id, partition)

    def _by_rack(self, subscribers: Sequence[int]) -> dict[str | None, Heap]:
        heaps: dict[str | None, Heap] = {}
        for index in subscribers:
            if self._racks[index]:
                heaps.setdefault(self._racks[index], []).append((self._sizes[index], index))
        for heap in heaps.values():
            heapq.heapify(heap)
        return heaps

    def _in_rack(self, racks: frozenset[str], by_rack: Mapping[str | None, Heap], size: int, other: int) -> int:
        """A member in one of the racks with at most `size` partitions; `other` where there is none."""
        for rack in sorted(racks & by_rack.keys()):
            own_size, index = self._first(by_rack[rack])
            if own_size <= size:
                return index
        return other

    def _first(self, heap: Heap) -> tuple[int, int]:
        """The member with fewest partitions. Entries that are out of date are corrected when they come up."""
        while heap[0][0] != self._sizes[heap[0][1]]:
            heapq.heapreplace(heap, (self._sizes[heap[0][1]], heap[0][1]))
        return heap[0]

    # Balancing

    def _balance(self) -> None:
        """Moves partitions along chains, from the members with most partitions first.

        A member from which no chain leads is settled, and so are all members that it could have given to: their sizes
        are less than two apart, and stay so. A member that has given never has to take.
        """
        smallest: dict[bytes, Heap] = {}
        for topic_id, subscribers in self._subscribers.items():
            smallest[topic_id] = [(self._sizes[index], index) for index in subscribers]
            heapq.heapify(smallest[topic_id])
        largest = [(-size, index) for index, size in enumerate(self._sizes)]
        heapq.heapify(largest)
        settled = [False] * len(self._members)
        while largest:
            size, index = heapq.heappop(largest)
            if settled[index] or -size != self._sizes[index]:
                continue
            chain = self._find_chain(index, smallest, settled)
            for giver, topic_id, taker in chain:
                self._move(giver, topic_id, taker)
            if chain:
                for changed in (index, chain[-1][2]):
                    heapq.heappush(largest, (-self._sizes[changed], changed))

    def _find_chain(self, start: int, smallest: Mapping[bytes, Heap], settled: list[bool]) -> list[Move]:
        """The shortest chain of moves from the member. Where there is none the list is empty, and every member that was
        reached is settled."""
        came_by: dict[int, Move | None] = {start: None}
        seen_topics: set[bytes] = set()
        queue = deque([start])
        limit = self._sizes[start] - 2
        while queue:
            giver = queue.popleft()
            for topic_id in self._topics_to_give(giver):
                if topic_id in seen_topics:
                    continue
                seen_topics.add(topic_id)
                size, taker = self._first(smallest[topic_id])
                if size <= limit:
                    return [*_chain(came_by, giver), (giver, topic_id, taker)]
                for other in self._subscribers[topic_id]:
                    if other not in came_by and not settled[other]:
                        came_by[other] = (giver, topic_id, other)
                        queue.append(other)
        for index in came_by:
            settled[index] = True
        return []

    def _topics_to_give(self, index: int) -> Iterator[bytes]:
        """The member's topics, those with most of its partitions first."""
        owned = self._owned[index]
        return iter(sorted(owned, key=lambda topic_id: (-len(owned[topic_id]), topic_id)))

    def _move(self, giver: int, topic_id: bytes, taker: int) -> None:
        owned = self._owned[giver][topic_id]
        partition = min(owned, key=lambda each: self._cost_of_moving(giver, topic_id, taker, each))
        owned.remove(partition)
        if not owned:
            del self._owned[giver][topic_id]
        self._sizes[giver] -= 1
        self._add(taker, topic_id, partition)

    def _cost_of_moving(self, giver: int, topic_id: bytes, taker: int, partition: int) -> tuple[int, int, int]:
        """A sort key. Stickiness decides first: a partition that the taker had before costs least, one that the giver
        had costs most."""
        nothing: frozenset[int] = frozenset()
        was_givers = partition in self._members[giver].assignment.get(topic_id, nothing)
        was_takers = partition in self._members[taker].assignment.get(topic_id, nothing)
        racks = self._topics.racks(topic_id, partition) if self._has_racks else frozenset()
        lost_rack = (self._racks[giver] in racks) - (self._racks[taker] in racks)
        return (was_givers - was_takers, lost_rack, -partition)

    def _add(self, index: int, topic_id: bytes, partition: int) -> None:
        self._owned[index].setdefault(topic_id, set()).add(partition)
        self._sizes[index] += 1


def _chain(came_by: Mapping[int, Move | None], index: int) -> list[Move]:
    steps = []
    while (step := came_by[index]) is not None:
        steps.append(step)
        index = step[0]
    return steps[::-1]
