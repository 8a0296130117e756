"""One classic group: its members, its state, its generation. The model is Kafka's `ClassicGroup`.

A classic group is EMPTY, or it is somewhere in a cycle of three states, which every rebalance goes through once:

    EMPTY or STABLE -> PREPARING_REBALANCE -> COMPLETING_REBALANCE -> STABLE

A member that joins, changes its protocols or leaves, and a session that ends, moves the group to PREPARING_REBALANCE.
There each JoinGroup waits, in its member's `awaiting_join`, until all members have rejoined or the rebalance timeout is
over; dynamic members that have not come by then are removed. Then the generation rises, a protocol is selected, and the
JoinGroups are answered: the group is in COMPLETING_REBALANCE, or EMPTY where nobody is left. Now each SyncGroup waits
in `awaiting_sync` until the leader's SyncGroup brings the assignment. The assignment is written, the SyncGroups are
answered, and the group is STABLE. Any change before that leads back to PREPARING_REBALANCE. A group that is deleted is
DEAD. `VALID_PREVIOUS_STATES` is the table of these moves.

What must hold between steps:
- A group with members has exactly one leader, which is one of them; a group without members has none.
- `static_members` names a member for each instance id, and no member twice (KIP-345).
- A member id in `pending_join_members` was handed out and is not a member's yet (KIP-394).
- `awaiting_join` is set in PREPARING_REBALANCE only, `awaiting_sync` in COMPLETING_REBALANCE only.
- In COMPLETING_REBALANCE and STABLE every member supports the selected protocol.
- The generation never falls.

The group keeps these rules and does not move by itself. `rebalance` decides when a rebalance starts and ends, `joins`
and `classic_groups` decide which request asks for one, and deadlines are theirs too. Only what STABLE and EMPTY groups
have is written (`classic_records`): a rebalance that is under way when a coordinator stops is forgotten.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import ClassVar, Final

from pykbroker.protocol.errors import ErrorCode

from ..common.group import Group, GroupType
from ..common.records import NO_TIMESTAMP, CoordinatorRecord, group_metadata_record
from ..common.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics, topic_count
from .classic_group_member import ClassicGroupMember

# To get a member from its enumeration takes Python 3.11 as long as a call.
_NONE: Final = ErrorCode.NONE
UNKNOWN_MEMBER_ID: Final = ""

MOST_TOPICS: Final = 100_000
MOST_SUBSCRIPTION_BYTES: Final = 8 << 20
"""Limits for the subscriptions of all members together, above which nobody looks into them."""


class ClassicGroupState(Enum):
    """The values are the names that ListGroups and DescribeGroups show."""

    EMPTY = "Empty"
    """The group has no members; it may have offsets. A group that only commits offsets is always EMPTY."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members join; their JoinGroups are answered when all have joined, or when the rebalance timeout is over."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """Members know the generation; their SyncGroups are answered when the leader's assignment comes."""
    STABLE = "Stable"
    """Every member has its part of the assignment."""
    DEAD = "Dead"
    """The group was deleted, and no request finds it any more."""


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState

VALID_PREVIOUS_STATES: Final = {
    EMPTY: {PREPARING_REBALANCE},
    PREPARING_REBALANCE: {EMPTY, STABLE, COMPLETING_REBALANCE},
    COMPLETING_REBALANCE: {PREPARING_REBALANCE},
    STABLE: {COMPLETING_REBALANCE},
    DEAD: {EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE},
}


class ClassicGroup:
    """A classic group. It keeps its own rules, and moves when `rebalance` says so.

    state_cause: why the group is in its state, in words for an operator. topics: what members are subscribed to;
    None where that is not known.
    """

    type: ClassVar[GroupType] = GroupType.CLASSIC

    def __init__(self, group_id: str, timestamp_ms: int, cause: str) -> None:
        self.group_id = group_id
        self.state = EMPTY
        self.previous_state: ClassicGroupState | None = None
        self.state_timestamp_ms = timestamp_ms
        self.state_cause = cause
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicGroupMember] = {}
        self.static_members: dict[str, str] = {}
        # Dicts keep the order of arrival, so that nothing depends on the order of a set.
        self.pending_join_members: dict[str, None] = {}
        self.pending_sync_members: dict[str, None] = {}
        self.new_member_added = False
        self.topics: frozenset[str] | None = None

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    @property
    def is_simple(self) -> bool:
        """Tell whether nobody ever joined: the group exists for its offsets."""
        return self.state is EMPTY and self.protocol_type is None and not self.pending_join_members

    @property
    def has_pending_members(self) -> bool:
        return bool(self.pending_join_members)

    def copy(self) -> ClassicGroup:
        """A group that no later change reaches. Protocols and assignments of members are replaced, never changed."""
        other = copy.copy(self)
        other.members = {member_id: replace(member) for member_id, member in self.members.items()}
        other.static_members = dict(self.static_members)
        other.pending_join_members = dict(self.pending_join_members)
        other.pending_sync_members = dict(self.pending_sync_members)
        return other

    # Members

    def add_pending(self, member_id: str) -> None:
        """Keep a member id that was handed out with MEMBER_ID_REQUIRED, until its owner joins with it."""
        assert member_id not in self.members
        self.pending_join_members[member_id] = None

    def add(self, member: ClassicGroupMember) -> None:
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.pending_join_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> ClassicGroupMember | None:
        """Remove a member, or a pending member id. Where the leader goes, the oldest member becomes leader."""
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_join_members.pop(member_id, None)
        self.pending_sync_members.pop(member_id, None)
        return member

    def rename_static_member(self, member: ClassicGroupMember, new_member_id: str) -> None:
        """Give a static member that came back its new id; it keeps its assignment, and the lead if it had it."""
        assert member.group_instance_id is not None
        old_member_id = member.member_id
        del self.members[old_member_id]
        self.pending_sync_members.pop(old_member_id, None)
        member.member_id = new_member_id
        self.members[new_member_id] = member
        self.static_members[member.group_instance_id] = new_member_id
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        if group_instance_id is not None:
            known_id = self.static_members.get(group_instance_id)
            if known_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return _NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # Joining

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def has_all_members_joined(self) -> bool:
        return not self.pending_join_members and all(m.awaiting_join is not None for m in self.members.values())

    def supports_protocols(self, protocol_type: str, protocols: dict[str, bytes]) -> bool:
        """Tell whether a member with these protocols may be in the group: every member must support one of them."""
        if self.state is EMPTY:
            return bool(protocol_type and protocols)
        if self.protocol_type != protocol_type:
            return False
        return any(all(name in member.protocols for member in self.members.values()) for name in protocols)

    def select_protocol(self) -> str:
        """The protocol with most votes; the earliest vote decides a tie. A member votes for the first of its protocols
        that all members support."""
        assert self.members
        voters = list(self.members.values())
        candidates = [name for name in voters[0].protocols if all(name in voter.protocols for voter in voters)]
        votes = Counter(voter.vote(candidates) for voter in voters)
        return votes.most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """Give the lead to a member that has rejoined. False where no member has."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaiting_join is not None:
            return True
        joined = next((m.member_id for m in self.members.values() if m.awaiting_join is not None), None)
        if joined is not None:
            self.leader_id = joined
        return joined is not None

    # Transitions

    def transition_to(self, state: ClassicGroupState, timestamp_ms: int, cause: str) -> None:
        assert self.state in VALID_PREVIOUS_STATES[state], f"group {self.group_id}: {self.state} to {state}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = timestamp_ms
        self.state_cause = cause

    def start_next_generation(self, timestamp_ms: int, cause: str) -> None:
        self.generation_id += 1
        self.pending_sync_members.clear()
        self.protocol_name = self.select_protocol() if self.members else None
        self.look_up_topics()
        self.transition_to(COMPLETING_REBALANCE if self.members else EMPTY, timestamp_ms, cause)

    def settle(self) -> None:
        """Make a group STABLE whose members no rebalance has brought together; the caller sets their assignments."""
        assert self.state is EMPTY
        assert self.members
        self.state = STABLE
        self.protocol_name = self.select_protocol()
        self.look_up_topics()

    # Topics

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Tell whether a member is subscribed to the topic.

        All topics count where consumers' subscriptions are unknown.
        """
        return self.uses_consumer_protocol if self.topics is None else topic in self.topics

    def look_up_topics(self) -> None:
        self.topics = self._subscribed_topics()

    def _subscribed_topics(self) -> frozenset[str] | None:
        """The topics that the members' metadata names; None where it names more than a group's record could hold.

        Most members send equal metadata, which is read once.
        """
        if not self.uses_consumer_protocol:
            return None
        assert self.protocol_name is not None or not self.members
        name = self.protocol_name or ""
        said = [member.protocols[name] for member in self.members.values()]
        if sum(map(len, said)) > MOST_SUBSCRIPTION_BYTES:
            return None
        subscriptions = dict.fromkeys(said)
        if sum(map(topic_count, subscriptions)) > MOST_TOPICS:
            return None
        all_topics: set[str] = set()
        for subscription in subscriptions:
            topics = subscribed_topics(subscription)
            if topics is None:
                return None
            all_topics |= topics
        return frozenset(all_topics)

    # Offsets

    def validate_offset_commit(
        self, member_id: str, instance_id: str | None, member_epoch: int, version: int
    ) -> ErrorCode:
        if member_epoch < 0 and self.state is EMPTY:
            return _NONE
        if member_epoch < 0 and not member_id and instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID  # A group with members takes offsets from members only.
        error_code = self._validate_generation(member_id, instance_id, member_epoch)
        if error_code is _NONE and self.state is COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return error_code

    def validate_txn_offset_commit(self, member_id: str, instance_id: str | None, member_epoch: int) -> ErrorCode:
        """A producer need not say in whose name it commits; where it does, it is fenced with its consumer (KIP-447).

        A rebalance that is under way does not matter.
        """
        names_nobody = not member_id and instance_id is None
        if member_epoch < 0 and (names_nobody or self.state is EMPTY):
            return _NONE
        return self._validate_generation(member_id, instance_id, member_epoch)

    def _validate_generation(self, member_id: str, instance_id: str | None, generation_id: int) -> ErrorCode:
        error_code = self.validate_member(member_id, instance_id)
        if error_code is _NONE and generation_id != self.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        return error_code

    def validate_committed_partitions(
        self, member_id: str, member_epoch: int, partitions: Iterable[tuple[bytes, int]]
    ) -> ErrorCode:
        """A member of the right generation may commit for any partition: the coordinator does not know the owners."""
        return _NONE

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        return _NONE

    def validate_offset_delete(self) -> ErrorCode:
        """Offsets of other protocols' groups are deleted only while the group is empty: subscriptions are unknown."""
        is_in_use = self.state is not EMPTY and not self.uses_consumer_protocol
        return ErrorCode.NON_EMPTY_GROUP if is_in_use else _NONE

    def offset_unused_since_ms(self, commit_timestamp_ms: int) -> int | None:
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.state is EMPTY:
            since_ms = self.state_timestamp_ms
            return commit_timestamp_ms if since_ms == NO_TIMESTAMP else since_ms
        return commit_timestamp_ms if self.state is STABLE and self.topics is not None else None

    # Records

    def tombstones(self) -> Iterable[CoordinatorRecord]:
        return (group_metadata_record(self.group_id, None),)


def find_classic(groups: Mapping[str, Group], group_id: str) -> ClassicGroup | None:
    group = groups.get(group_id)
    return group if isinstance(group, ClassicGroup) else None
