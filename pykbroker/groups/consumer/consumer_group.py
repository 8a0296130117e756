"""One group of the consumer protocol (KIP-848): its epochs, its members, and what each of them should have.

Three numbers follow each other. The group epoch rises whenever a member comes, changes its
subscription or leaves, and when the topics that members are subscribed to change. The assignment epoch is the group
epoch for which the target assignment was computed; it catches up in a heartbeat, or later where an assignor works
beside the event loop. A member's epoch catches up with the assignment epoch, one member at a time, each by its own
heartbeats (`consumer_group_member` has the rules of that). So the state of the group is read from these numbers:

    EMPTY        the group has no members
    ASSIGNING    the assignment epoch is behind the group epoch
    RECONCILING  a member is not STABLE in the assignment epoch yet
    STABLE       every member has its part of the target assignment

What must hold between steps:
- A partition has one owner at most: the member that has it assigned, or must still confirm that it gave it up.
- The group epoch and the assignment epoch never fall.
- No member's epoch is above the assignment epoch, and the assignment epoch is not above the group epoch.
- `static_members` names one member for each instance id.
- Counts and owners that are derived from members are those of the members as they are.

The group changes by records only, those that the rules append and those that are read back (`consumer_replay`), so that
both give the same group. Nothing here decides when an epoch begins (`membership`, `member_progress`), computes a target
assignment (`target_assignment`), moves a member towards it (`reconciliation`) or knows deadlines. The model is Kafka's
`ConsumerGroup`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from enum import Enum
from typing import ClassVar, Final, Self

from ..assignors.model import Assignment
from ..common.group import Group, GroupType
from ..common.records import CoordinatorRecord
from ..common.subscription import CONSUMER_PROTOCOL_TYPE
from ..modern.committing_group import CommittingGroup
from ..modern.modern_group import NO_EPOCH, find_group
from .consumer_group_member import ConsumerGroupMember
from .consumer_records import RECORDS, partition_metadata_tombstone, regex_record
from .resolved_regular_expression import ResolvedRegularExpression, subscription

NO_ASSIGNMENT: Final[Assignment] = {}
NO_OWNERS: Final[dict[int, str]] = {}


class ConsumerGroupState(Enum):
    """The values are the names that ListGroups and ConsumerGroupDescribe show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The group has changed since its target assignment was computed."""
    RECONCILING = "Reconciling"
    """Not every member has its part of the target assignment yet."""
    STABLE = "Stable"
    DEAD = "Dead"


class Ownership:
    """A mark of who owns which partitions of a group: another one takes its place when that changes."""


class ConsumerGroup(CommittingGroup[ConsumerGroupMember, Assignment]):
    """A consumer group, with what is derived from its members.

    subscribed_topic_names: how many members name a topic. subscribed_regexes: how many use an expression.
    """

    type: ClassVar[GroupType] = GroupType.CONSUMER

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.resolved_regexes: dict[str, ResolvedRegularExpression] = {}
        self.subscribed_topic_names: Counter[str] = Counter()
        self.subscribed_regexes: Counter[str] = Counter()
        self.has_partition_metadata_record = False
        """Whether the log has a record from before KIP-1101, which needs a tombstone."""
        self._owners: dict[bytes, dict[int, str]] = {}
        self.ownership = Ownership()

    def copy(self) -> Self:
        other = super().copy()
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
        return ConsumerGroupState.STABLE if self.is_reconciled else ConsumerGroupState.RECONCILING

    @property
    def preferred_assignor(self) -> str | None:
        """The assignor that most members ask for; None where no member asks for one."""
        votes = Counter(
            member.server_assignor for member in self.members.values() if member.server_assignor is not None
        )
        return votes.most_common(1)[0][0] if votes else None

    def partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """The epoch of the partition's owner; -1 where the partition is free."""
        owner = self.owner_of(topic_id, partition)
        return NO_EPOCH if owner is None else self.members[owner].member_epoch

    def owned_of(self, topic_id: bytes) -> Container[int]:
        """The partitions of the topic that a member has, or must still give up."""
        return self._owners.get(topic_id, ())

    def owners_of(self, topic_id: bytes) -> dict[int, str]:
        """The ids of the members that have partitions of the topic, or must still give them up."""
        return self._owners.get(topic_id, NO_OWNERS)

    def owner_of(self, topic_id: bytes, partition: int) -> str | None:
        return self._owners.get(topic_id, {}).get(partition)

    def target_of(self, member: ConsumerGroupMember) -> Assignment:
        """The member's part of the target assignment; a static member that came back has its former self's part."""
        if member.member_id in self.target_assignment or member.instance_id is None:
            return self.target_assignment.get(member.member_id, NO_ASSIGNMENT)
        return self.target_assignment.get(self.static_members.get(member.instance_id, ""), NO_ASSIGNMENT)

    # Subscriptions

    def subscription_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """Topic names, with those that the member's regular expression matched."""
        return subscription(member, self.resolved_regexes)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topic_names or any(
            topic in resolved.topics
            for expression, resolved in self.resolved_regexes.items()
            if self.subscribed_regexes[expression] > 0
        )

    @property
    def topic_names(self) -> frozenset[str]:
        """The names of all topics that a member is subscribed to."""
        names = set(self.subscribed_topic_names)
        for expression in self.subscribed_regexes:
            resolved = self.resolved_regexes.get(expression)
            if resolved is not None:
                names |= resolved.topics
        return frozenset(names)

    @property
    def is_homogeneous(self) -> bool:
        """Tell whether all members are subscribed to the same topics."""
        by_name = self.subscribed_topic_names.values()
        if not self.subscribed_regexes:
            return all(count == len(self.members) for count in by_name)
        return (
            not by_name and len(self.subscribed_regexes) == 1 and len(self.members) == self.subscribed_regexes.total()
        )

    def assignment_epoch_of(self, member: ConsumerGroupMember, topic_id: bytes, partition: int) -> int | None:
        return member.assignment_epoch_of(topic_id, partition)

    # Changes

    def put(self, member: ConsumerGroupMember) -> None:
        """Add the member, or replace the value that the group had of it.

        The last record that assigns a partition decides its owner: in a compacted log, the newest record of one member
        may come before the record by which another member made room for it. A record that is not about assignments
        changes no owner, since the member may have lost partitions by records that compaction has taken meanwhile.
        """
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if old is None or not old.is_subscribed_as(member):
            if old is not None:
                self._forget_subscription(old)
            self.subscribed_topic_names.update(member.subscribed_topic_names)
            if member.subscribed_topic_regex:
                self.subscribed_regexes[member.subscribed_topic_regex] += 1
        if old is None or (old.assigned, old.pending_revocation) != (member.assigned, member.pending_revocation):
            if old is not None:
                self._disown(old)
            self.ownership = Ownership()
            for owned in (member.assigned, member.pending_revocation):
                for topic_id, partitions in owned.items():
                    self._owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member.member_id))

    def put_reconciled(self, member: ConsumerGroupMember, owners: Mapping[bytes, dict[int, str]]) -> None:
        """Replace the value that the group had of the member by one with other partitions.

        owners: by topic, those that it changes; empty where nobody has any of the topic.
        """
        self.members[member.member_id] = member
        self.ownership = Ownership()
        self._owners.update(owners)
        for topic_id in [topic_id for topic_id, each in owners.items() if not each]:
            del self._owners[topic_id]

    def remove(self, member_id: str) -> None:
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self._forget_subscription(old)
        self._disown(old)
        if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]

    def _forget_subscription(self, member: ConsumerGroupMember) -> None:
        for name in member.subscribed_topic_names:
            _decrement(self.subscribed_topic_names, name)
        if member.subscribed_topic_regex:
            _decrement(self.subscribed_regexes, member.subscribed_topic_regex)

    def _disown(self, member: ConsumerGroupMember) -> None:
        self.ownership = Ownership()
        for owned in (member.assigned, member.pending_revocation):
            for topic_id, partitions in owned.items():
                owners = self._owners.get(topic_id, {})
                for partition in partitions:
                    if owners.get(partition) == member.member_id:
                        del owners[partition]
                if not owners:
                    self._owners.pop(topic_id, None)

    # Records

    def tombstones(self) -> Iterator[CoordinatorRecord]:
        yield from RECORDS.tombstones_of_members(self.group_id, self.members)
        for expression in self.resolved_regexes:
            yield regex_record(self.group_id, expression, None)
        yield partition_metadata_tombstone(self.group_id)
        yield RECORDS.group_tombstone(self.group_id)


def _decrement(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def find_consumer(groups: Mapping[str, Group], group_id: str) -> ConsumerGroup | None:
    return find_group(groups, group_id, ConsumerGroup)
