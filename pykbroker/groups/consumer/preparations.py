"""The next step of a large member of a consumer group, computed beside the event loop (`modern.preparations`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pykbroker.protocol.encoded_array import EncodedArray
from pykbroker.protocol.encoded_structs import EncodedStructs
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

from ..assignors.model import Assignment
from ..common.records import CoordinatorRecord
from ..common.topics import TopicsView
from .consumer_group import ConsumerGroup, Ownership
from .consumer_group_member import ConsumerGroupMember, OwnedPartitions
from .consumer_records import assignment_record
from .reconciliation import Reconciliation, ReportedPartitions
from .resolved_regular_expression import ResolvedRegularExpression, subscription


class Reported:
    """The partitions that a heartbeat reports as the member's own, put together where somebody asks."""

    def __init__(self, request: ConsumerGroupHeartbeatRequest) -> None:
        self._request = request

    @cached_property
    def partitions(self) -> ReportedPartitions | None:
        """The partitions by topic id; None where the heartbeat reports nothing."""
        if self._request.topic_partitions is None:
            return None
        owned: dict[bytes, set[int]] = {}
        for topic in self._request.topic_partitions:
            owned.setdefault(bytes(topic.topic_id), set()).update(topic.partitions)
        return owned


@dataclass(frozen=True, slots=True, eq=False)
class PreparedStep:
    """The result of a preparation. current: the member after the step; None where it has to start anew. record: None
    where nothing changes. owners: by topic, those that are others after the step, empty where nobody has the topic any
    more. told: the partitions of `current`, as the answer has them. reported: what the heartbeat reports.
    """

    preparation: StepPreparation
    current: ConsumerGroupMember | None
    record: CoordinatorRecord | None
    owners: Mapping[bytes, dict[int, str]]
    told: EncodedStructs
    reported: Reported

    def fits(self, group: ConsumerGroup, member: ConsumerGroupMember, target: Assignment) -> bool:
        """Tell whether it is the step of this member towards this target in the group as it is."""
        return self.preparation.fits(group, member, target)

    def applied_to(self, member: ConsumerGroupMember) -> ConsumerGroupMember:
        """The member after the step. member: one that it fits."""
        current = self.current
        assert current is not None
        return replace(
            member,
            member_epoch=current.member_epoch,
            previous_member_epoch=current.previous_member_epoch,
            state=current.state,
            assigned=current.assigned,
            pending_revocation=current.pending_revocation,
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepPreparation:
    """A large member's step, as of now.

    ownership: the group's mark of who owns what; owners are read while the step is computed, and nothing of it counts
    where that mark is another one afterwards. resolved: the topics of the member's regular expression. topics: as they
    are now. version: of the request.
    """

    group: ConsumerGroup
    ownership: Ownership
    member: ConsumerGroupMember
    target: Assignment
    target_epoch: int
    resolved: ResolvedRegularExpression | None
    topics: TopicsView
    request: ConsumerGroupHeartbeatRequest
    version: int

    def is_current(self) -> bool:
        member = self.group.members.get(self.member.member_id)
        return member is not None and self.fits(self.group, member, self.group.target_of(member))

    def fits(self, group: ConsumerGroup, member: ConsumerGroupMember, target: Assignment) -> bool:
        mine = self.member
        expression = mine.subscribed_topic_regex
        return (
            group is self.group
            and target is self.target
            and group.ownership is self.ownership
            and group.assignment_epoch == self.target_epoch
            and group.resolved_regexes.get(expression) is self.resolved
            and member.assigned is mine.assigned
            and member.pending_revocation is mine.pending_revocation
            and (member.member_id, member.state) == (mine.member_id, mine.state)
            and (member.member_epoch, member.previous_member_epoch) == (mine.member_epoch, mine.previous_member_epoch)
            and member.is_subscribed_as(mine)
        )

    def run(self) -> PreparedStep:
        member, reported = self.member, Reported(self.request)
        current: ConsumerGroupMember | None = member
        if not member.is_reconciled_to(self.target_epoch):
            current = Reconciliation(
                member=member,
                target_epoch=self.target_epoch,
                target=self.target,
                topic_ids=self._topic_ids(),
                has_subscription_changed=False,
                owned=reported.partitions,
                owned_of=self._owned_of,
            ).next()
        if current is None or current == member:
            return PreparedStep(self, current, None, {}, self._told(member.assigned), reported)
        if current.assigned == member.assigned:
            current = replace(current, assigned=member.assigned)
        record = assignment_record(self.group.group_id, current).only_bytes()
        return PreparedStep(self, current, record, self._owners(current), self._told(current.assigned), reported)

    def _topic_ids(self) -> frozenset[bytes]:
        expression = self.member.subscribed_topic_regex
        names = subscription(self.member, {} if self.resolved is None else {expression: self.resolved})
        had = {*self.target, *self.member.assigned}
        return frozenset(topic_id for topic_id in had if self.topics.topic_name(topic_id) in names)

    def _owned_of(self, topic_id: bytes) -> Collection[int]:
        return self.group.owners_of(topic_id).copy()  # one call, in which nobody changes it

    def _owners(self, current: ConsumerGroupMember) -> dict[bytes, dict[int, str]]:
        """The owners of topics that change hands by the step."""
        changed: dict[bytes, dict[int, str]] = {}
        before, member_id = self.member, self.member.member_id
        for owned in (before.assigned, before.pending_revocation):
            for topic_id, partitions in owned.items():
                owners = self._changing(topic_id, changed)
                for partition in partitions:
                    if owners.get(partition) == member_id:
                        del owners[partition]
        for owned in (current.assigned, current.pending_revocation):
            for topic_id, partitions in owned.items():
                self._changing(topic_id, changed).update(dict.fromkeys(partitions, member_id))
        return changed

    def _changing(self, topic_id: bytes, changed: dict[bytes, dict[int, str]]) -> dict[int, str]:
        owners = changed.get(topic_id)
        if owners is None:
            owners = changed[topic_id] = self.group.owners_of(topic_id).copy()
        return owners

    def _told(self, assigned: OwnedPartitions) -> EncodedStructs:
        told = EncodedArray(ConsumerGroupHeartbeatResponse, self.version)
        told.add(told_partitions(assigned))
        return told.finish()


def told_partitions(assigned: OwnedPartitions) -> list[ConsumerGroupHeartbeatResponseTopicPartitions]:
    """The partitions of a member, as the answer to its heartbeat has them."""
    return [
        ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in assigned.items()
    ]
