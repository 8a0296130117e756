"""A member of a share group (KIP-932): its subscription, what it has, and its epochs.

A member is a value: every change makes a new one, by a record. Partitions are shared, so nobody has to give anything up
before another one gets it: a member takes its part of the target assignment at once, in the epoch of that. The model is
Kafka's `ShareGroupMember`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from pykbroker.protocol.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    TopicPartitions,
)

from ..assignors.model import Assignment
from ..modern.modern_member import LEAVING_EPOCH, ModernMember, sorted_names

STABLE: Final = 0
"""The only state that a member of a share group has; Kafka's records have a number for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMember(ModernMember):
    """A member of a share group, as a value. subscribed_topic_names: sorted, without repetitions."""

    state: int = STABLE
    subscribed_topic_names: tuple[str, ...] = ()
    assigned: Assignment = field(default_factory=dict)

    def is_reconciled_to(self, target_assignment_epoch: int) -> bool:
        return self.state == STABLE and self.member_epoch == target_assignment_epoch

    def in_epoch(self, member_epoch: int, assigned: Assignment) -> ShareGroupMember:
        """The member with what it gets in the given epoch; its epoch of now becomes the previous one."""
        return replace(
            self,
            member_epoch=member_epoch,
            previous_member_epoch=self.member_epoch,
            state=STABLE,
            assigned=assigned,
        )

    # Records

    def with_metadata(self, value: ShareGroupMemberMetadataValue) -> ShareGroupMember:
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=sorted_names(value.subscribed_topic_names),
        )

    def metadata_value(self) -> ShareGroupMemberMetadataValue:
        return ShareGroupMemberMetadataValue(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=list(self.subscribed_topic_names),
        )

    def with_assignment(self, value: ShareGroupCurrentMemberAssignmentValue) -> ShareGroupMember:
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=value.state,
            assigned={bytes(topic.topic_id): frozenset(topic.partitions) for topic in value.assigned_partitions},
        )

    def assignment_value(self) -> ShareGroupCurrentMemberAssignmentValue:
        return ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=self.state,
            assigned_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in self.assigned.items()
            ],
        )

    def without_assignment(self) -> ShareGroupMember:
        return replace(self, member_epoch=LEAVING_EPOCH, previous_member_epoch=LEAVING_EPOCH, assigned={})
