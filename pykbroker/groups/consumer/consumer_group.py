"""One group of the consumer protocol (KIP-848): its epochs, its members, and what everyone should have.

It changes by records only, those that the rules append and those that are read back, so that both give the same group.
What is derived from members (who subscribes to what, who owns which partition) is kept up with each change. The model
is Kafka's `ConsumerGroup`.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from ..common.subscription import CONSUMER_PROTOCOL_TYPE
from .consumer_member import ConsumerMember

TargetAssignment: TypeAlias = Mapping[bytes, frozenset[int]]
"""Topic id to partitions."""

NO_ASSIGNMENT: Final[TargetAssignment] = {}
NO_EPOCH: Final = -1
FIRST_EPOCH: Final = 1
"""Of a group without members; 0 is what a member says that joins."""


class ConsumerGroupState(Enum):
    """The values are the names that ListGroups and ConsumerGroupDescribe show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The group has changed since its target assignment was computed."""
    RECONCILING = "Reconciling"
    """Not every member has its part of the target assignment yet."""
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class ResolvedRegularExpression:
    """version: of the metadata that was looked at. timestamp_ms: when, by the wall clock."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class Incarnation:
    """Tells a group from another one of its id, before or behind it. A copy is the same group."""


class ConsumerGroup:
    """members: every one is a value; a change puts another in its place.

    subscribed_topic_names: how many members name a topic. subscribed_regexes: how many use an expression.
    seen_topic_change: the newest change of topics when the group looked at its own last; `topic_changes` counts them.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.incarnation = Incarnation()
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        self.target_assignment: dict[str, TargetAssignment] = {}
        self.resolved_regexes: dict[str, ResolvedRegularExpression] = {}
        self.subscribed_topic_names: Counter[str] = Counter()
        self.subscribed_regexes: Counter[str] = Counter()
        self.has_partition_metadata_record = False
        """Written before KIP-1101, and due for a tombstone."""
        self.seen_topic_change = 0
        self._owners: dict[bytes, dict[int, str]] = {}

    def copy(self) -> ConsumerGroup:
        """One that goes its own way; members and assignments are values."""
        other = copy.copy(self)
        other.members = dict(self.members)
        other.static_members = dict(self.static_members)
        other.target_assignment = dict(self.target_assignment)
        other.resolved_regexes = dict(self.resolved_regexes)
        other.subscribed_topic_names = Counter(self.subscribed_topic_names)
        other.subscribed_regexes = Counter(self.subscribed_regexes)
        other._owners = {topic_id: dict(owners) for topic_id, owners in self._owners.items()}
        return other

    @property
    def protocol_type(self) -> str:
        return CONSUMER_PROTOCOL_TYPE

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def preferred_assignor(self) -> str | None:
        """What most members ask for; None where nobody asks for any."""
        votes = Counter(
            member.server_assignor for member in self.members.values() if member.server_assignor is not None
        )
        return votes.most_common(1)[0][0] if votes else None

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """The epoch of the member that has the partition, or must still give it up; -1 where it is free."""
        owner = self.owner_of(topic_id, partition)
        return NO_EPOCH if owner is None else self.members[owner].member_epoch

    def owner_of(self, topic_id: bytes, partition: int) -> str | None:
        return self._owners.get(topic_id, {}).get(partition)

    def target_of(self, member: ConsumerMember) -> TargetAssignment:
        """A static member that comes back has what its former self should have."""
        if member.member_id in self.target_assignment or member.instance_id is None:
            return self.target_assignment.get(member.member_id, NO_ASSIGNMENT)
        return self.target_assignment.get(self.static_members.get(member.instance_id, ""), NO_ASSIGNMENT)

    # Subscriptions

    def subscription_of(self, member: ConsumerMember) -> frozenset[str]:
        """Topic names, those that the member's regular expression matched among them."""
        return subscription(member, self.resolved_regexes)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topic_names or any(
            topic in resolved.topics
            for expression, resolved in self.resolved_regexes.items()
            if self.subscribed_regexes[expression] > 0
        )

    @property
    def topic_names(self) -> frozenset[str]:
        """Everything that somebody is subscribed to."""
        names = set(self.subscribed_topic_names)
        for expression in self.subscribed_regexes:
            resolved = self.resolved_regexes.get(expression)
            if resolved is not None:
                names |= resolved.topics
        return frozenset(names)

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members are subscribed to the same topics."""
        by_name = self.subscribed_topic_names.values()
        if not self.subscribed_regexes:
            return all(count == len(self.members) for count in by_name)
        return (
            not by_name and len(self.subscribed_regexes) == 1 and len(self.members) == self.subscribed_regexes.total()
        )

    # Changes

    def put(self, member: ConsumerMember) -> None:
        """Adds the member, or puts it in the place of what it was.

        The last word on who owns a partition counts: while a log is read that is being compacted, what is newest of
        one member may come before what made room for it.
        """
        old = self.members.get(member.member_id)
        if old is not None:
            self._forget_traits(old)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.subscribed_topic_names.update(member.subscribed_topic_names)
        if member.subscribed_topic_regex:
            self.subscribed_regexes[member.subscribed_topic_regex] += 1
        for owned in (member.assigned, member.pending_revocation):
            for topic_id, partitions in owned.items():
                self._owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member.member_id))

    def remove(self, member_id: str) -> None:
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self._forget_traits(old)
        if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]

    def _forget_traits(self, member: ConsumerMember) -> None:
        for name in member.subscribed_topic_names:
            _decrement(self.subscribed_topic_names, name)
        if member.subscribed_topic_regex:
            _decrement(self.subscribed_regexes, member.subscribed_topic_regex)
        for owned in (member.assigned, member.pending_revocation):
            for topic_id, partitions in owned.items():
                owners = self._owners.get(topic_id, {})
                for partition in partitions:
                    if owners.get(partition) == member.member_id:
                        del owners[partition]
                if not owners:
                    self._owners.pop(topic_id, None)


def subscription(member: ConsumerMember, resolved: Mapping[str, ResolvedRegularExpression]) -> frozenset[str]:
    """Topic names. resolved: what regular expressions match."""
    names = frozenset(member.subscribed_topic_names)
    expression = resolved.get(member.subscribed_topic_regex)
    return names if expression is None else names | expression.topics


def _decrement(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
