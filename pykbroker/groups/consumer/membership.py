"""Membership of a consumer group: which member a request speaks for, replacement, fencing, timeouts.

A dynamic member is known by its member id. A static member is known by its instance id (KIP-345), and its next process
takes its place. The models are the methods of Kafka's `GroupMetadataManager` that have the same names.
"""

from __future__ import annotations

import base64
from collections.abc import Collection
from dataclasses import replace
from random import Random

from ..assignors.model import Assignment
from ..common.context import Step
from ..common.deadlines import (
    Deadlines,
    MemberRejoinTimeout,
    MemberSyncTimeout,
    RevocationTimeout,
)
from ..common.topics import MetadataHash
from ..modern.membership import ModernMembership, known_member, known_static_member, unreleased
from ..modern.modern_member import STATIC_LEAVING_EPOCH, in_words
from .consumer_group import ConsumerGroup
from .consumer_group_member import ConsumerGroupMember, OwnedPartitions
from .consumer_records import (
    assignment_record,
    group_epoch_record,
    member_record,
    regex_record,
    target_record,
)
from .consumer_replay import ConsumerReplay
from .migration import Migration


class ConsumerMembership(ModernMembership[ConsumerGroup, ConsumerGroupMember, Assignment]):
    """The membership of consumer groups: members are added, replaced and removed, and have deadlines."""

    def __init__(
        self, records: ConsumerReplay, deadlines: Deadlines, metadata_hash: MetadataHash, migration: Migration
    ) -> None:
        super().__init__(records, deadlines)
        self._metadata_hash = metadata_hash
        self._migration = migration

    # The member that a request speaks for

    def find_member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, *, is_joining: bool
    ) -> ConsumerGroupMember:
        """The member that the request speaks for; a new one where it is joining. Raises ApiError. Changes nothing."""
        if instance_id is not None:
            if is_joining:
                return self._joining_static_member(group, member_id, instance_id)
            return known_static_member(group, member_id, instance_id)
        if is_joining and member_id not in group.members:
            return ConsumerGroupMember(member_id=member_id)
        return known_member(group, member_id)

    def _joining_static_member(self, group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerGroupMember:
        member = group.static_member(instance_id)
        if member is None:
            return group.members.get(member_id) or ConsumerGroupMember(member_id=member_id)
        if not member.uses_classic_protocol and member.member_epoch != STATIC_LEAVING_EPOCH:
            raise unreleased(member, member_id, instance_id)
        return member

    def replace_static_member(
        self, group: ConsumerGroup, old: ConsumerGroupMember, member_id: str, step: Step
    ) -> ConsumerGroupMember:
        """Give the member's place, with all that it has, to a new member id, in the epoch of a member that joins."""
        new = replace(old, member_id=member_id, member_epoch=0, previous_member_epoch=0)
        target = group.target_assignment.get(old.member_id, {})
        self.forget_member(group, old.member_id, step)
        self._records.change(member_record(group.group_id, new), step)
        self._records.change(target_record(group.group_id, member_id, target), step)
        self._records.change(assignment_record(group.group_id, new), step)
        step.because(group.group_id, f"{member_id} is static member {old.instance_id} now, not {old.member_id}")
        return new

    # Leaving

    def leave_for_a_while(self, group: ConsumerGroup, member: ConsumerGroupMember, step: Step) -> None:
        """A static member leaves and will be back: it keeps what it has as long as its session lasts."""
        away = replace(
            member,
            member_epoch=STATIC_LEAVING_EPOCH,
            assigned=_since_ever(member.assigned),
            pending_revocation={},
        )
        self._records.change(assignment_record(group.group_id, away), step)
        step.because(group.group_id, f"static member {member.instance_id} left for a while")

    def remove(self, group: ConsumerGroup, members: Collection[ConsumerGroupMember], cause: str, step: Step) -> None:
        """Remove the members. Those that stay learn of it by a new group epoch, or, where they all speak the classic
        protocol, by a rebalance of the classic group that this one becomes."""
        gone = in_words([member.member_id for member in members])
        step.because(group.group_id, f"{gone} removed: {cause}")
        if self._migration.downgrade_without(group, members, step):
            return
        for member in members:
            self.forget_member(group, member.member_id, step)
        for member in members:
            self.forget_unused_regex(group, member.subscribed_topic_regex, step)
        self.start_epoch(group, step)

    def forget_unused_regex(self, group: ConsumerGroup, expression: str, step: Step) -> None:
        if expression and not group.subscribed_regexes[expression]:
            self._records.change(regex_record(group.group_id, expression, None), step)

    def start_epoch(self, group: ConsumerGroup, step: Step) -> None:
        """Raise the group's epoch, so that a new target assignment is computed."""
        metadata_hash = self._metadata_hash.of(group.topic_names)
        record = group_epoch_record(group.group_id, group.group_epoch + 1, metadata_hash)
        self._records.begin_epoch(group, record, step)

    # Timeouts

    def await_rejoin(self, group: ConsumerGroup, member: ConsumerGroupMember, step: Step) -> None:
        """Start the time in which a classic member has to rejoin, unless it runs already."""
        timeout = MemberRejoinTimeout(group.group_id, member.member_id)
        if timeout not in self._deadlines:
            self._deadlines.schedule(timeout, step.now_ms + member.rebalance_timeout_ms)

    def await_sync(
        self, group: ConsumerGroup, member: ConsumerGroupMember, session_timeout_ms: int, step: Step
    ) -> None:
        """Start the time in which a classic member that has rejoined has to send SyncGroup."""
        self._deadlines.cancel(MemberRejoinTimeout(group.group_id, member.member_id))
        self.keep_session(group, member.member_id, session_timeout_ms, step)
        timeout = MemberSyncTimeout(group.group_id, member.member_id)
        self._deadlines.schedule(timeout, step.now_ms + member.rebalance_timeout_ms)

    def stop_awaiting_sync(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        self._deadlines.cancel(MemberSyncTimeout(group.group_id, member.member_id))

    def expire_classic_member(self, group: ConsumerGroup, member_id: str, what: str, step: Step) -> None:
        member = group.members.get(member_id)
        if member is not None and member.uses_classic_protocol:
            cause = f"it sent no {what} within {member.rebalance_timeout_ms} ms"
            self.remove(group, [member], cause, step)

    def expire_session(self, group: ConsumerGroup, member_id: str, step: Step) -> None:
        member = group.members.get(member_id)
        if member is not None:
            self.remove(group, [member], "no heartbeat within its session timeout", step)

    def expire_revocation(self, group: ConsumerGroup, timeout: RevocationTimeout, step: Step) -> None:
        member = group.members.get(timeout.member_id)
        if member is not None and member.member_epoch == timeout.member_epoch:
            cause = f"it did not give up its partitions within {member.rebalance_timeout_ms} ms"
            self.remove(group, [member], cause, step)


def _since_ever(owned: OwnedPartitions) -> dict[bytes, dict[int, int]]:
    """The partitions as assigned in epoch 0, so that the member's next process may commit in whichever epoch it is."""
    return {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in owned.items()}


def new_member_id(rng: Random) -> str:
    """A UUID of version 4 in Kafka's base64, which never begins with a dash."""
    while True:
        number = rng.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62) | (0x4 << 76) | (0x2 << 62)
        text = base64.urlsafe_b64encode(number.to_bytes(16, "big")).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text
