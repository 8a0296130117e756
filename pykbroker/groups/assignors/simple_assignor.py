"""The simple assignor of share groups (KIP-932): balance first, then as few moves as possible.

A partition of a share group may have several members, and has where there are more members than partitions. All
subscribers of a partition share it as evenly as can be; a member keeps what it has as far as that allows. The rules are
Kafka's `SimpleAssignor`, whose result depends on the order of Java's tables: `java_tables` gives it.

Four steps follow each other. What a member has of topics that it is not subscribed to is dropped. A member with more
partitions than it should have gives up the first ones. A partition with more members than it should have loses the
first ones. Partitions with too few members are given to members with too few partitions, in turn.

Where all members are subscribed to the same topics that is done for all partitions together, else for one topic after
the other, since each has other subscribers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from .java_tables import (
    ComputedTable,
    JavaTable,
    buckets_for,
    buckets_of_copy,
    hash_of_int,
    hash_of_partition,
    hash_of_text,
    hash_of_uuid,
)
from .model import Assignment

NAME: Final = "simple"

PlaceT = TypeVar("PlaceT")


@dataclass(frozen=True, slots=True)
class SharingMember:
    """A member of a share group. topic_ids: of its topics that exist, in Kafka's order. assignment: its former one."""

    topic_ids: Sequence[bytes]
    assignment: Assignment = field(default_factory=dict)


def assign(
    members: Mapping[str, SharingMember], assignable: Mapping[bytes, Collection[int]], is_homogeneous: bool
) -> dict[str, Assignment]:
    """The new target assignment, with all members in it.

    members: in the order in which Kafka puts them into its table. assignable: partitions by topic id that may be
    assigned: they exist, and are initialized. is_homogeneous: all members are subscribed to the same topics.
    """
    member_ids = list(JavaTable(hash_of_text, members))
    ordered = [members[member_id] for member_id in member_ids]
    if not any(member.topic_ids for member in ordered):
        return {member_id: {} for member_id in members}
    results = _Results([member.assignment for member in ordered])
    if is_homogeneous:
        _assign_together(ordered, assignable, results)
    else:
        _assign_by_topic(ordered, assignable, results)
    return dict(zip(member_ids, results.assignments(), strict=True))


class _Results:
    """The new assignments by the number of the member: the former ones until they change."""

    def __init__(self, former: Sequence[Assignment]) -> None:
        self.former = former
        self._changed: dict[int, dict[bytes, set[int]]] = {}

    def of(self, member: int) -> dict[bytes, set[int]]:
        """The member's assignment, to change it."""
        changed = self._changed.get(member)
        if changed is None:
            changed = {topic_id: set(partitions) for topic_id, partitions in self.former[member].items()}
            self._changed[member] = changed
        return changed

    def assignments(self) -> Iterator[Assignment]:
        for member, former in enumerate(self.former):
            changed = self._changed.get(member)
            yield (
                former
                if changed is None
                else {topic_id: frozenset(partitions) for topic_id, partitions in changed.items()}
            )


def _assign_together(
    members: Sequence[SharingMember], assignable: Mapping[bytes, Collection[int]], results: _Results
) -> None:
    subscribed = members[0].topic_ids
    places = [(topic_id, index) for topic_id in subscribed for index in sorted(assignable.get(topic_id, ()))]
    known = set(subscribed)
    board = _Board[tuple[bytes, int]](
        places,
        range(len(members)),
        results,
        topic_of=lambda place: place,
        of_places=ComputedTable(hash_of_partition, buckets=buckets_for(len(places))),
        new_places=lambda: JavaTable(hash_of_partition),
    )
    for member, former in enumerate(results.former):
        for topic_id in JavaTable(hash_of_uuid, former):
            if topic_id in known:
                for index in _in_order(former[topic_id]):
                    board.hold(member, (topic_id, index))
            else:
                results.of(member).pop(topic_id)
    board.settle()


def _assign_by_topic(
    members: Sequence[SharingMember], assignable: Mapping[bytes, Collection[int]], results: _Results
) -> None:
    subscribers: dict[bytes, list[int]] = {}
    for member, each in enumerate(members):
        for topic_id in each.topic_ids:
            subscribers.setdefault(topic_id, []).append(member)
    for topic_id in JavaTable(hash_of_uuid, subscribers):
        _assign_topic(topic_id, subscribers[topic_id], sorted(assignable.get(topic_id, ())), results)


def _assign_topic(topic_id: bytes, subscribers: Sequence[int], indexes: Sequence[int], results: _Results) -> None:
    board = _Board[int](
        indexes,
        subscribers,
        results,
        topic_of=lambda index: (topic_id, index),
        of_places=ComputedTable(hash_of_int, buckets=buckets_for(len(indexes))),
        new_places=lambda: JavaTable(hash_of_int),
    )
    for member, former in enumerate(results.former):
        for index in _in_order(former.get(topic_id, ())):
            board.hold(member, index)
    board.settle()


def _in_order(partitions: Collection[int]) -> JavaTable[int]:
    return JavaTable(hash_of_int, sorted(partitions), buckets_of_copy(len(partitions)))


class _Board(Generic[PlaceT]):
    """Partitions that are shared out among the same members: who has which, as the steps go on.

    places: the partitions to assign. members: the numbers of their subscribers. topic_of: topic id and index of a
    place. of_places: a table for what somebody has or should have; new_places: makes one for what a member has.
    """

    def __init__(
        self,
        places: Sequence[PlaceT],
        members: Sequence[int],
        results: _Results,
        *,
        topic_of: Callable[[PlaceT], tuple[bytes, int]],
        of_places: ComputedTable[PlaceT],
        new_places: Callable[[], JavaTable[PlaceT]],
    ) -> None:
        self._targets = places
        self._members = members
        self._results = results
        self._topic_of = topic_of
        self._order_of_places = of_places
        self._new_places = new_places
        self._places: dict[int, JavaTable[PlaceT]] = {}
        self._holders: dict[PlaceT, JavaTable[int]] = {}
        self._sharing = -(-len(members) // len(places)) if places else 0
        """How many members a partition should have."""
        each = self._sharing * len(places) / len(members)
        self._wanted = {
            member: math.ceil(each * (number + 1)) - math.ceil(each * number) for number, member in enumerate(members)
        }
        """How many partitions a member should have."""

    def hold(self, member: int, place: PlaceT) -> None:
        """Note what the member has had up to now."""
        if member not in self._places:
            self._places[member] = self._new_places()
        self._places[member].add(place)
        self._holders_of(place).add(member)

    def _holders_of(self, place: PlaceT) -> JavaTable[int]:
        holders = self._holders.get(place)
        if holders is None:
            self._order_of_places.add(place)
            holders = self._holders[place] = JavaTable(hash_of_int)
        return holders

    def settle(self) -> None:
        """Take away what is too much, and give what is missing."""
        for member in self._places:
            self._take_surplus_from(member)
        for place in self._order_of_places:
            self._take_surplus_of(place)
        for place in self._targets:
            self._holders_of(place)
        self._give()

    def _take_surplus_from(self, member: int) -> None:
        places = self._places[member]
        surplus = len(places) - self._wanted.get(member, 0)
        for place in list(places)[: max(surplus, 0)]:
            self._take(member, place)

    def _take_surplus_of(self, place: PlaceT) -> None:
        holders = self._holders[place]
        surplus = len(holders) - self._sharing
        for member in list(holders)[: max(surplus, 0)]:
            self._take(member, place)

    def _take(self, member: int, place: PlaceT) -> None:
        topic_id, index = self._topic_of(place)
        self._results.of(member)[topic_id].discard(index)
        self._places[member].remove(place)
        self._holders[place].remove(member)

    def _give(self) -> None:
        """Give partitions with too few members to members with too few partitions, which take turns.

        Where none of those can take a partition, because they all have it, it stays with fewer members.
        """
        counts = {member: len(self._places.get(member, ())) for member in self._members}
        unfilled = _Ring(sorted(member for member, count in counts.items() if count < self._wanted[member]))
        given: dict[int, set[PlaceT]] = {}
        for place in self._order_of_places:
            holders = self._holders[place]
            for _ in range(self._sharing - len(holders)):
                member = unfilled.next_without(holders)
                if member is None:
                    break
                topic_id, index = self._topic_of(place)
                self._results.of(member).setdefault(topic_id, set()).add(index)
                mine = given.setdefault(member, set())
                if place not in mine:
                    mine.add(place)
                    counts[member] += 1
                if counts[member] >= self._wanted[member]:
                    unfilled.drop_last()
            if not len(unfilled):
                break


class _Ring:
    """Members that take turns. A round in which nobody took anything is the last one, for what is given just then."""

    def __init__(self, members: Iterable[int]) -> None:
        self._members = list(members)
        self._at = 0
        self._has_somebody_taken = False

    def __len__(self) -> int:
        return len(self._members)

    def next_without(self, holders: JavaTable[int]) -> int | None:
        """The next member that is not among the holders; None where there is none."""
        while True:
            if self._at >= len(self._members):
                if not self._has_somebody_taken or not self._members:
                    return None
                self._at, self._has_somebody_taken = 0, False
            member = self._members[self._at]
            self._at += 1
            if member not in holders:
                self._has_somebody_taken = True
                return member

    def drop_last(self) -> None:
        """Drop the member that took last: it has all that it should have."""
        self._at -= 1
        del self._members[self._at]
