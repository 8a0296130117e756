"""One share group (KIP-932): its epochs, its members, what each of them should have, and whose state is kept.

Three numbers follow each other, as in a consumer group. The group epoch rises whenever a member comes, changes its
subscription or leaves, when the subscribed topics change, and when partitions were initialized that nobody has yet. The
assignment epoch is the group epoch for which the target assignment was computed. A member's epoch becomes the
assignment epoch by its next heartbeat, with which it takes its part of the target at once.

The group is EMPTY or STABLE, as it has members or not. It does not end by itself: an administrator deletes it.

What must hold between steps:
- The group epoch and the assignment epoch never fall.
- No member's epoch is above the assignment epoch, and the assignment epoch is not above the group epoch.
- A target assignment has partitions only that were initialized when it was computed.
- Counts that are derived from members are those of the members as they are.

The group changes by records only, those that the rules append and those that are read back (`share_replay`), so that
both give the same group. The model is Kafka's `ShareGroup`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import ClassVar, Final, NamedTuple, Self

from pykbroker.protocol.errors import ErrorCode

from ..assignors.model import Assignment
from ..common.group import Group, GroupType
from ..common.records import CoordinatorRecord
from ..modern.modern_group import ModernGroup, find_group
from .share_group_member import ShareGroupMember
from .share_records import RECORDS, state_tombstone
from .state_partitions import StatePartitions

SHARE_PROTOCOL_TYPE: Final = "share"
NO_ASSIGNMENT: Final[Assignment] = {}


class ShareGroupState(Enum):
    """The values are the names that ListGroups and ShareGroupDescribe show."""

    EMPTY = "Empty"
    STABLE = "Stable"


class Assignable(NamedTuple):
    """The partitions of subscribed topics that are initialized and exist, by topic id.

    changes, seen_topic_change: the numbers of the group as of which that is so.
    """

    changes: int
    seen_topic_change: int
    partitions: Mapping[bytes, frozenset[int]]


class ShareGroup(ModernGroup[ShareGroupMember, Assignment]):
    """A share group, with what is derived from its members.

    subscribed_topic_names: how many members name a topic. states: None where the group never had any. changes: a number
    that another one follows when the set of subscribed names or the states change. assigned: by topic id, what the
    target assignment has of all members together; None where nobody has looked since it changed.
    """

    type: ClassVar[GroupType] = GroupType.SHARE

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.states: StatePartitions | None = None
        self.initializing_since_ms: dict[bytes, int] = {}
        """By topic id, when the newest initialization of partitions of the topic began; in memory only."""
        self.left_over: dict[bytes, frozenset[int]] = {}
        """By topic id, partitions that are initializing, and that the next part of the initialization begins with."""
        self.subscribed_topic_names: Counter[str] = Counter()
        self.changes = 0
        self.is_hashed = False
        """Whether `metadata_hash` is one of the names as they are."""
        self.initialized_as_of = -1
        """The `changes` as of which there was nothing more to initialize than what is initializing."""
        self.assigned: Mapping[bytes, frozenset[int]] | None = None
        self.assignable: Assignable | None = None
        self.level: tuple[Mapping[bytes, frozenset[int]], Mapping[bytes, frozenset[int]]] | None = None
        """The newest of `assigned` and of what is assignable in which nothing was missing."""
        self.retries_ms: int | None = None
        """When the oldest initialization is to be tried again; None where none is under way."""
        self.is_initialization_inherited = False
        """Whether another coordinator began to initialize partitions, and nobody has begun again since."""

    def copy(self) -> Self:
        """A group that no later change reaches. Members, assignments and states are values."""
        other = super().copy()
        other.initializing_since_ms = dict(self.initializing_since_ms)
        other.left_over = dict(self.left_over)
        other.subscribed_topic_names = Counter(self.subscribed_topic_names)
        return other

    @property
    def protocol_type(self) -> str:
        return SHARE_PROTOCOL_TYPE

    @property
    def state(self) -> ShareGroupState:
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def state_partitions(self) -> StatePartitions:
        return self.states or StatePartitions()

    def target_of(self, member_id: str) -> Assignment:
        return self.target_assignment.get(member_id, NO_ASSIGNMENT)

    # Subscriptions

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topic_names

    @property
    def topic_names(self) -> Iterable[str]:
        """The names of all topics that a member is subscribed to."""
        return self.subscribed_topic_names

    @property
    def is_homogeneous(self) -> bool:
        """Tell whether all members are subscribed to the same topics."""
        return all(count == len(self.members) for count in self.subscribed_topic_names.values())

    # Offsets: a share group has none in `__consumer_offsets`

    def validate_offset_commit(
        self, member_id: str, instance_id: str | None, member_epoch: int, version: int
    ) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def validate_txn_offset_commit(self, member_id: str, instance_id: str | None, member_epoch: int) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def validate_committed_partitions(
        self, member_id: str, member_epoch: int, partitions: Iterable[tuple[bytes, int]]
    ) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """A fetch finds none, which is no error (OffsetMetadataManager.fetchOffsets)."""
        return ErrorCode.NONE

    def validate_offset_delete(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def offset_unused_since_ms(self, commit_timestamp_ms: int) -> int | None:
        return None

    # Changes

    def put(self, member: ShareGroupMember) -> None:
        """Add the member, or replace the value that the group had of it."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if old is None or old.subscribed_topic_names != member.subscribed_topic_names:
            before = len(self.subscribed_topic_names)
            self.subscribed_topic_names.update(member.subscribed_topic_names)
            if len(self.subscribed_topic_names) != before:
                self._names_have_changed()
            self._forget_subscription(old)

    def remove(self, member_id: str) -> None:
        self._forget_subscription(self.members.pop(member_id, None))

    def _forget_subscription(self, member: ShareGroupMember | None) -> None:
        before = len(self.subscribed_topic_names)
        for name in () if member is None else member.subscribed_topic_names:
            self.subscribed_topic_names[name] -= 1
            if not self.subscribed_topic_names[name]:
                del self.subscribed_topic_names[name]
        if len(self.subscribed_topic_names) != before:
            self._names_have_changed()

    def _names_have_changed(self) -> None:
        self.changes += 1
        self.is_hashed = False

    def put_target(self, member_id: str, target: Assignment) -> None:
        super().put_target(member_id, target)
        self.assigned = None

    def remove_target(self, member_id: str) -> None:
        super().remove_target(member_id)
        self.assigned = None

    def put_states(self, states: StatePartitions | None) -> None:
        self.states = states
        known = self.state_partitions.initializing
        for topic_id in self.initializing_since_ms.keys() - known:
            del self.initializing_since_ms[topic_id]
        for topic_id in self.left_over.keys() - known:
            del self.left_over[topic_id]
        self.changes += 1

    # Records

    def tombstones(self) -> Iterator[CoordinatorRecord]:
        yield from RECORDS.tombstones_of_members(self.group_id, self.members)
        yield state_tombstone(self.group_id)
        yield RECORDS.group_tombstone(self.group_id)


def find_share(groups: Mapping[str, Group], group_id: str) -> ShareGroup | None:
    return find_group(groups, group_id, ShareGroup)
