"""How members come to and go from a consumer group: whose place a heartbeat speaks for, replaced, left, fenced.

A dynamic member is known by its id, a static one by its instance id (KIP-345): it leaves its place for its next self.
The model is the like-named parts of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

import base64
from collections.abc import Collection
from dataclasses import replace
from random import Random

from pykbroker.protocol.errors import ErrorCode

from ..common.context import Step
from ..common.deadlines import (
    Deadlines,
    MemberRejoinTimeout,
    MemberSyncTimeout,
    RevocationTimeout,
    SessionTimeout,
    cancel_timeouts_of_member,
)
from ..common.refusal import Refusal
from ..common.topics import MetadataHash
from .consumer_group import ConsumerGroup
from .consumer_member import STATIC_LEAVING_EPOCH, ConsumerMember, OwnedPartitions
from .consumer_records import (
    ConsumerRecords,
    assignment_record,
    group_epoch_record,
    member_record,
    member_tombstones,
    regex_record,
    target_record,
)
from .migration import Migration


class ConsumerMembership:
    def __init__(
        self, records: ConsumerRecords, deadlines: Deadlines, metadata_hash: MetadataHash, migration: Migration
    ) -> None:
        self._records = records
        self._deadlines = deadlines
        self._metadata_hash = metadata_hash
        self._migration = migration

    # Who speaks

    def find_member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, *, is_joining: bool
    ) -> ConsumerMember | Refusal:
        """The member in whose place the request speaks; one that is new where it is joining. Changes nothing."""
        if instance_id is None:
            member = group.members.get(member_id)
            if member is not None or is_joining:
                return member or ConsumerMember(member_id=member_id)
            return Refusal(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}."
            )
        member = group.static_member(instance_id)
        if not is_joining:
            return self.known_static_member(group, member_id, instance_id)
        if member is None:
            return group.members.get(member_id) or ConsumerMember(member_id=member_id)
        if not member.uses_classic_protocol and member.member_epoch != STATIC_LEAVING_EPOCH:
            return Refusal(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
                f"id is owned by {member.member_id} member.",
            )
        return member

    def known_static_member(self, group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember | Refusal:
        member = group.static_member(instance_id)
        if member is None:
            return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if member.member_id != member_id:
            return Refusal(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
            )
        return member

    def replace_static_member(
        self, group: ConsumerGroup, old: ConsumerMember, member_id: str, step: Step
    ) -> ConsumerMember:
        """The place goes to a new id with all that it has; epoch 0 says that the one who has it now has just come."""
        new = replace(old, member_id=member_id, member_epoch=0, previous_member_epoch=0)
        target = group.target_assignment.get(old.member_id, {})
        self.cancel_timeouts(group, old.member_id)
        for tombstone in member_tombstones(group.group_id, old.member_id):
            self._records.change(tombstone, step)
        self._records.change(member_record(group.group_id, new), step)
        self._records.change(target_record(group.group_id, member_id, target), step)
        self._records.change(assignment_record(group.group_id, new), step)
        step.because(f"group {group.group_id}: {member_id} is static member {old.instance_id} now, not {old.member_id}")
        return new

    # Leaving

    def leave_for_a_while(self, group: ConsumerGroup, member: ConsumerMember, step: Step) -> None:
        """A static member that will be back: what it has is kept for it as long as its session lasts."""
        away = replace(
            member,
            member_epoch=STATIC_LEAVING_EPOCH,
            assigned=_since_ever(member.assigned),
            pending_revocation={},
        )
        self._records.change(assignment_record(group.group_id, away), step)
        step.because(f"group {group.group_id}: static member {member.instance_id} left for a while")

    def remove(self, group: ConsumerGroup, members: Collection[ConsumerMember], cause: str, step: Step) -> None:
        """Whoever stays learns of it by a new group epoch, or by a rebalance where all who stay are classic members."""
        names = ", ".join(member.member_id for member in members)
        step.because(f"group {group.group_id}: {names} is out: {cause}")
        if self._migration.downgrade_without(group, members, step):
            return
        for member in members:
            for tombstone in member_tombstones(group.group_id, member.member_id):
                self._records.change(tombstone, step)
            self.cancel_timeouts(group, member.member_id)
        for member in members:
            self.forget_unused_regex(group, member.subscribed_topic_regex, step)
        self.start_epoch(group, step)

    def forget_unused_regex(self, group: ConsumerGroup, expression: str, step: Step) -> None:
        if expression and not group.subscribed_regexes[expression]:
            self._records.change(regex_record(group.group_id, expression, None), step)

    def start_epoch(self, group: ConsumerGroup, step: Step) -> None:
        """The group has changed: its target assignment is to be computed anew."""
        metadata_hash = self._metadata_hash.of(group.topic_names)
        self._records.change(group_epoch_record(group.group_id, group.group_epoch + 1, metadata_hash), step)
        step.because(f"group {group.group_id} is in epoch {group.group_epoch}")

    # Timeouts

    def keep_session(self, group: ConsumerGroup, member_id: str, timeout_ms: int, step: Step) -> None:
        self._deadlines.schedule(SessionTimeout(group.group_id, member_id), step.now_ms + timeout_ms)

    def await_revocation(self, group: ConsumerGroup, member: ConsumerMember, step: Step) -> None:
        timeout = RevocationTimeout(group.group_id, member.member_id, member.member_epoch)
        self._deadlines.schedule(timeout, step.now_ms + member.rebalance_timeout_ms)

    def stop_awaiting_revocation(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._deadlines.cancel(RevocationTimeout(group.group_id, member.member_id, member.member_epoch))

    def await_rejoin(self, group: ConsumerGroup, member: ConsumerMember, step: Step) -> None:
        """The time runs from the first time that it was told."""
        timeout = MemberRejoinTimeout(group.group_id, member.member_id)
        if timeout not in self._deadlines:
            self._deadlines.schedule(timeout, step.now_ms + member.rebalance_timeout_ms)

    def await_sync(self, group: ConsumerGroup, member: ConsumerMember, session_timeout_ms: int, step: Step) -> None:
        """It has rejoined."""
        self._deadlines.cancel(MemberRejoinTimeout(group.group_id, member.member_id))
        self.keep_session(group, member.member_id, session_timeout_ms, step)
        timeout = MemberSyncTimeout(group.group_id, member.member_id)
        self._deadlines.schedule(timeout, step.now_ms + member.rebalance_timeout_ms)

    def stop_awaiting_sync(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        self._deadlines.cancel(MemberSyncTimeout(group.group_id, member.member_id))

    def cancel_timeouts(self, group: ConsumerGroup, member_id: str) -> None:
        cancel_timeouts_of_member(self._deadlines, group.group_id, member_id)

    def expire_classic_member(self, group: ConsumerGroup, member_id: str, what: str, step: Step) -> None:
        member = group.members.get(member_id)
        if member is not None and member.uses_classic_protocol:
            cause = f"it sent no {what} within {member.rebalance_timeout_ms} ms"
            self.remove(group, [member], cause, step)

    def expire_session(self, group: ConsumerGroup, member_id: str, step: Step) -> None:
        member = group.members.get(member_id)
        if member is not None:
            self.remove(group, [member], "its session is over", step)

    def expire_revocation(self, group: ConsumerGroup, timeout: RevocationTimeout, step: Step) -> None:
        member = group.members.get(timeout.member_id)
        if member is not None and member.member_epoch == timeout.member_epoch:
            cause = f"it did not give up its partitions within {member.rebalance_timeout_ms} ms"
            self.remove(group, [member], cause, step)


def _since_ever(owned: OwnedPartitions) -> dict[bytes, dict[int, int]]:
    """Assigned in epoch 0: whatever epoch the member's next self commits in, it is not before that."""
    return {topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in owned.items()}


def new_member_id(rng: Random) -> str:
    """A UUID of version 4 in Kafka's base64, which never begins with a dash."""
    while True:
        number = rng.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62) | (0x4 << 76) | (0x2 << 62)
        text = base64.urlsafe_b64encode(number.to_bytes(16, "big")).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text
