"""One member's next step from what it has to what it should have (KIP-848).

First the member gives up the partitions that its target does not have, and stays in its epoch until it has confirmed
that. Then it goes to the target's epoch and gets the other partitions that are free; those that other members still
have it gets in later heartbeats. The model is Kafka's `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from ..assignors.model import Assignment
from .consumer_group_member import (
    STABLE,
    UNKNOWN,
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    ConsumerGroupMember,
    OwnedPartitions,
)

ReportedPartitions: TypeAlias = Mapping[bytes, Set[int]]
"""The partitions that a member reports as its own, by topic id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """The facts that decide one member's next step.

    topic_ids: of what it has and should have, the topics that it is subscribed to; of other topics it gets nothing.

    owned: what the member reports, None where it reports nothing. owned_of: the partitions of a topic that some member
    has, or must still give up. has_subscription_changed: since the member's last heartbeat.
    """

    member: ConsumerGroupMember
    target_epoch: int
    target: Assignment
    topic_ids: frozenset[bytes]
    has_subscription_changed: bool
    owned: ReportedPartitions | None
    owned_of: Callable[[bytes], Container[int]]

    def next(self) -> ConsumerGroupMember | None:
        """The member after its step, unchanged where it can take none yet; None where it has to start anew."""
        member = self.member
        if member.state is UNKNOWN:
            return self._towards_target(self.target_epoch) if self.owned == {} else None
        is_settled = member.state is STABLE and member.member_epoch == self.target_epoch
        is_awaited = member.state is UNREVOKED_PARTITIONS and self._owns_any(member.pending_revocation)
        if is_settled or is_awaited:
            return self._without_unsubscribed_topics() if self.has_subscription_changed else member
        return self._towards_target(member.member_epoch)

    def _owns_any(self, partitions: OwnedPartitions) -> bool:
        """Tell whether the member still owns one of the partitions; a member that does not report may own them all."""
        if self.owned is None:
            return True
        return any(not self.owned.get(topic_id, frozenset()).isdisjoint(each) for topic_id, each in partitions.items())

    def _without_unsubscribed_topics(self) -> ConsumerGroupMember:
        """The member gives up topics that it has unsubscribed from, which its target may still have."""
        member = self.member
        kept = {topic_id: each for topic_id, each in member.assigned.items() if topic_id in self.topic_ids}
        if len(kept) == len(member.assigned):
            return member
        revoked = {topic_id: dict(each) for topic_id, each in member.pending_revocation.items()}
        for topic_id, each in member.assigned.items():
            if topic_id not in kept:
                revoked.setdefault(topic_id, {}).update(each)
        if self._owns_any(revoked):
            return member.in_epoch(
                member.member_epoch, state=UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=revoked
            )
        return member.in_epoch(member.member_epoch, assigned=kept)

    def _towards_target(self, member_epoch: int) -> ConsumerGroupMember:
        kept: dict[bytes, dict[int, int]] = {}
        revoked: dict[bytes, dict[int, int]] = {}
        released: dict[bytes, list[int]] = {}
        awaits_release = False
        for topic_id in dict.fromkeys([*self.target, *self.member.assigned]):
            target = self.target.get(topic_id, frozenset()) if topic_id in self.topic_ids else frozenset[int]()
            current = self.member.assigned.get(topic_id, {})
            if staying := {partition: epoch for partition, epoch in current.items() if partition in target}:
                kept[topic_id] = staying
            if leaving := {partition: epoch for partition, epoch in current.items() if partition not in target}:
                revoked[topic_id] = leaving
            missing = sorted(target - staying.keys())
            if free := self._free(topic_id, missing):
                released[topic_id] = free
            awaits_release |= len(free) < len(missing)
        if revoked and self._owns_any(revoked):
            return self.member.in_epoch(
                member_epoch, state=UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=revoked
            )
        for topic_id, partitions in released.items():
            kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, self.target_epoch))
        state = UNRELEASED_PARTITIONS if awaits_release else STABLE
        return self.member.in_epoch(self.target_epoch, state=state, assigned=kept, pending_revocation={})

    def _free(self, topic_id: bytes, partitions: Sequence[int]) -> list[int]:
        """Those of the partitions that nobody has, or that the member itself is giving up."""
        taken, mine = self.owned_of(topic_id), self.member.pending_revocation.get(topic_id, {})
        return [partition for partition in partitions if partition not in taken or partition in mine]
