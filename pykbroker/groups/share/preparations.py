"""The next step of a large member of a share group, computed beside the event loop (`modern.preparations`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pykbroker.protocol.encoded_array import EncodedArray
from pykbroker.protocol.encoded_structs import EncodedStructs
from pykbroker.protocol.messages.share_groups import (
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatResponseTopicPartitions,
)

from ..assignors.model import Assignment
from ..common.records import CoordinatorRecord
from ..common.topics import TopicsView
from .share_group import ShareGroup
from .share_group_member import ShareGroupMember
from .share_records import assignment_record


@dataclass(frozen=True, slots=True, eq=False)
class PreparedShareStep:
    """The result of a preparation. current: the member after the step. record: None where nothing changes. told: the
    partitions of `current`, as the answer has them.
    """

    preparation: ShareStepPreparation
    current: ShareGroupMember
    record: CoordinatorRecord | None
    told: EncodedStructs

    def fits(self, group: ShareGroup, member: ShareGroupMember, target: Assignment) -> bool:
        """Tell whether it is the step of this member towards this target in the group as it is."""
        return self.preparation.fits(group, member, target)

    def applied_to(self, member: ShareGroupMember) -> ShareGroupMember:
        """The member after the step. member: one that it fits."""
        current = self.current
        return replace(
            member,
            member_epoch=current.member_epoch,
            previous_member_epoch=current.previous_member_epoch,
            state=current.state,
            assigned=current.assigned,
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ShareStepPreparation:
    """A large member's step, as of now. target: with topics that the member may not be subscribed to any more. topics:
    as they are now. version: of the request.
    """

    group: ShareGroup
    member: ShareGroupMember
    target: Assignment
    target_epoch: int
    topics: TopicsView
    version: int

    def is_current(self) -> bool:
        member = self.group.members.get(self.member.member_id)
        return member is not None and self.fits(self.group, member, self.group.target_of(member.member_id))

    def fits(self, group: ShareGroup, member: ShareGroupMember, target: Assignment) -> bool:
        mine = self.member
        return (
            group is self.group
            and target is self.target
            and group.assignment_epoch == self.target_epoch
            and member.assigned is mine.assigned
            and (member.member_id, member.state) == (mine.member_id, mine.state)
            and (member.member_epoch, member.previous_member_epoch) == (mine.member_epoch, mine.previous_member_epoch)
            and member.subscribed_topic_names == mine.subscribed_topic_names
        )

    def run(self) -> PreparedShareStep:
        current = self._next()
        if current == self.member:
            return PreparedShareStep(self, current, None, self._told(current.assigned))
        record = assignment_record(self.group.group_id, current).only_bytes()
        if current.assigned == self.member.assigned:
            current = replace(current, assigned=self.member.assigned)
        return PreparedShareStep(self, current, record, self._told(current.assigned))

    def _next(self) -> ShareGroupMember:
        member = self.member
        if member.is_reconciled_to(self.target_epoch):
            return member
        names = frozenset(member.subscribed_topic_names)
        target = {topic_id: each for topic_id, each in self.target.items() if self.topics.topic_name(topic_id) in names}
        if member.member_epoch == self.target_epoch:
            return replace(member, assigned=target)
        return member.in_epoch(self.target_epoch, target)

    def _told(self, assigned: Assignment) -> EncodedStructs:
        told = EncodedArray(ShareGroupHeartbeatResponse, self.version)
        told.add(told_partitions(assigned))
        return told.finish()


def told_partitions(assigned: Assignment) -> list[ShareGroupHeartbeatResponseTopicPartitions]:
    """The partitions of a member, as the answer to its heartbeat has them."""
    return [
        ShareGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in assigned.items()
    ]
