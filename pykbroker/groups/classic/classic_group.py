"""One classic group: its members, its state, its generation. The model is Kafka's `ClassicGroup`.

It knows the bookkeeping and the invariants between its parts, not when a rebalance starts or ends: that is `rebalance`.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace
from enum import Enum
from typing import Final

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_records import GroupMetadataValue, MemberMetadata
from pykbroker.state_machine import BadRecord

from ..common.records import CoordinatorRecord, group_metadata_record
from ..common.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics, topic_count
from .member import ClassicMember

UNKNOWN_MEMBER_ID: Final = ""
NO_GENERATION: Final = -1

MOST_TOPICS: Final = 100_000
MOST_SUBSCRIPTION_BYTES: Final = 8 << 20
"""Of all members together."""


class ClassicGroupState(Enum):
    """The values are the names that ListGroups and DescribeGroups show."""

    EMPTY = "Empty"
    """No members; offsets may be there. A group that only commits offsets is always here."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are joining; the JoinGroup answers are owed until all are here or time is up."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """Members know the generation; the SyncGroup answers are owed until the leader's assignment is here."""
    STABLE = "Stable"
    DEAD = "Dead"
    """Deleted; nobody finds the group any more."""


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState

VALID_PREVIOUS_STATES: Final = {
    EMPTY: {PREPARING_REBALANCE},
    PREPARING_REBALANCE: {EMPTY, STABLE, COMPLETING_REBALANCE},
    COMPLETING_REBALANCE: {PREPARING_REBALANCE},
    STABLE: {COMPLETING_REBALANCE},
    DEAD: {EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE},
}


class ClassicGroup:
    """state_cause: why the group is in its state, in words for an operator."""

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
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        # Both in the order of arrival, so that nothing depends on the order of a set.
        self.pending_join_members: dict[str, None] = {}
        self.pending_sync_members: dict[str, None] = {}
        self.new_member_added = False
        self.topics: frozenset[str] | None = None

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    @property
    def is_simple(self) -> bool:
        """Nobody ever joined: the group is there for its offsets."""
        return self.state is EMPTY and self.protocol_type is None and not self.pending_join_members

    def copy(self) -> ClassicGroup:
        """One that goes its own way. What members offer and are assigned is replaced and never changed."""
        other = copy.copy(self)
        other.members = {member_id: replace(member) for member_id, member in self.members.items()}
        other.static_members = dict(self.static_members)
        other.pending_join_members = dict(self.pending_join_members)
        other.pending_sync_members = dict(self.pending_sync_members)
        return other

    # Members

    def add_pending(self, member_id: str) -> None:
        """Keeps a member id that was handed out (MEMBER_ID_REQUIRED) and has not come back yet."""
        assert member_id not in self.members
        self.pending_join_members[member_id] = None

    def add(self, member: ClassicMember) -> None:
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.pending_join_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> ClassicMember | None:
        """Also forgets a pending id. The longest member becomes leader where the leader goes."""
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_join_members.pop(member_id, None)
        self.pending_sync_members.pop(member_id, None)
        return member

    def rename_static_member(self, member: ClassicMember, new_member_id: str) -> None:
        """A static member came back under a new id: it keeps its assignment, and its place as leader."""
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
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # Joining

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def has_all_members_joined(self) -> bool:
        return not self.pending_join_members and all(m.awaiting_join is not None for m in self.members.values())

    def supports_protocols(self, protocol_type: str, protocols: dict[str, bytes]) -> bool:
        """Whether a member with these protocols could be in the group: one of them must be every member's."""
        if self.state is EMPTY:
            return bool(protocol_type and protocols)
        if self.protocol_type != protocol_type:
            return False
        return any(all(name in member.protocols for member in self.members.values()) for name in protocols)

    def select_protocol(self) -> str:
        """Each member votes for the first of its protocols that all support; the earliest vote decides a tie."""
        assert self.members
        voters = list(self.members.values())
        candidates = [name for name in voters[0].protocols if all(name in voter.protocols for voter in voters)]
        votes = Counter(voter.vote(candidates) for voter in voters)
        return votes.most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """Leaves the lead to a member that has rejoined. False where nobody has, or nobody is there."""
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
        self.topics = self._subscribed_topics()
        self.transition_to(COMPLETING_REBALANCE if self.members else EMPTY, timestamp_ms, cause)

    def settle(self) -> None:
        """For members that no rebalance has brought together: they are about to be given their assignments."""
        assert self.state is EMPTY
        assert self.members
        self.state = STABLE
        self.protocol_name = self.select_protocol()
        self.topics = self._subscribed_topics()

    # Topics

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Where a consumer group's subscriptions are not known, every topic counts as subscribed to."""
        return self.uses_consumer_protocol if self.topics is None else topic in self.topics

    def _subscribed_topics(self) -> frozenset[str] | None:
        """Most members say the same. Of more topics than a group that can be written down names they are not known."""
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

    # Records

    @property
    def least_record_bytes(self) -> int:
        """What members said and are assigned, without the rest of the record."""
        name = self.protocol_name or ""
        return sum(len(each.assignment) + len(each.protocols[name]) for each in self.members.values())

    def record(self) -> CoordinatorRecord:
        """The group as it is, for the log."""
        return group_metadata_record(
            self.group_id,
            GroupMetadataValue(
                protocol_type=self.protocol_type or "",
                generation=self.generation_id,
                protocol=self.protocol_name,
                leader=self.leader_id,
                current_state_timestamp=self.state_timestamp_ms,
                members=[self._member_record(member) for member in self.members.values()],
            ),
        )

    def record_of_creation(self) -> CoordinatorRecord:
        """A new group before its first generation: its members are not written down until they have an assignment."""
        value = GroupMetadataValue(
            protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=self.state_timestamp_ms
        )
        return group_metadata_record(self.group_id, value)

    def _member_record(self, member: ClassicMember) -> MemberMetadata:
        assert self.protocol_name is not None
        return MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.protocols[self.protocol_name],
            assignment=member.assignment,
        )

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        """The group as it was written: stable with its members, or empty. Raises BadRecord."""
        _check(value)
        group = cls(group_id, value.current_state_timestamp, "read from the log")
        group.state = STABLE if value.members else EMPTY
        group.generation_id = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol_name = value.protocol
        group.leader_id = value.leader if value.members else None
        for written in value.members:
            group.add(_member_from_record(written, value.protocol))
        group.topics = group._subscribed_topics()
        return group


def _check(value: GroupMetadataValue) -> None:
    """What every group that was written down holds to, and what the rules rely on."""
    member_ids = {member.member_id for member in value.members}
    instance_ids = [member.group_instance_id for member in value.members if member.group_instance_id is not None]
    if len(member_ids) < len(value.members) or len(set(instance_ids)) < len(instance_ids):
        raise BadRecord("the group has a member twice")
    if value.members and (value.protocol is None or not value.protocol_type or value.leader not in member_ids):
        raise BadRecord("the group has members, but not a protocol and a leader that is one of them")


def _member_from_record(written: MemberMetadata, protocol_name: str | None) -> ClassicMember:
    return ClassicMember(
        member_id=written.member_id,
        group_instance_id=written.group_instance_id,
        client_id=written.client_id,
        client_host=written.client_host,
        rebalance_timeout_ms=written.session_timeout if written.rebalance_timeout == -1 else written.rebalance_timeout,
        session_timeout_ms=written.session_timeout,
        # Of the protocols that the member offered only the chosen one was written.
        protocols={} if protocol_name is None else {protocol_name: bytes(written.subscription)},
        assignment=bytes(written.assignment),
    )
