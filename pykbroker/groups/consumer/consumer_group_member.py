"""A member of a consumer group (KIP-848): its subscription, what it has, what it must give up, and its epochs.

A member is a value: every change makes a new one, by a record. It moves through three states, and only its own
heartbeats move it (`reconciliation`):

    STABLE                 the member has its part of the target assignment, as of its epoch
    UNREVOKED_PARTITIONS   the member was told to give up `pending_revocation`, and has not confirmed it
    UNRELEASED_PARTITIONS  the member is in the target's epoch, and other members still hold what it should get

A new target assignment that takes partitions from a member moves it to UNREVOKED_PARTITIONS; its epoch stays. When the
member reports that it owns none of them any more, its epoch becomes the target's, and it gets those of its partitions
that are free: all of them makes it STABLE, fewer make it UNRELEASED_PARTITIONS, and each heartbeat looks again. A
member that loses nothing takes this second step at once.

`member_epoch` is 0 for a member that joins, and -2 for a static member that has left for a while and keeps its place
until its session ends. `previous_member_epoch` is what a member may still send whose answer was lost.

What must hold: nobody else has what is in `assigned` or `pending_revocation`, and a member that is not
UNREVOKED_PARTITIONS has nothing in `pending_revocation`.

Deadlines are not kept here: `membership` removes a member whose session ends, or that does not give up its partitions
within its rebalance timeout. UNKNOWN is a state that a later Kafka has written; such a member has to start anew. A
member that speaks the classic protocol has `classic` set, and moves by JoinGroup, not by heartbeats
(`classic_protocol_members`). The model is Kafka's `ConsumerGroupMember`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TypeAlias

from pykbroker.protocol.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    TopicPartitions,
)

from ..modern.committing_group import CommittingMember
from ..modern.modern_member import LEAVING_EPOCH, sorted_names, with_epochs

OwnedPartitions: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""Topic id to partitions, each with the epoch in which it was assigned."""


class MemberState(IntEnum):
    """The values are those of Kafka's records."""

    STABLE = 0
    """The member has its part of the target assignment, as of its epoch."""
    UNREVOKED_PARTITIONS = 1
    """The member was told to give up partitions and has not confirmed it; its epoch stays until then."""
    UNRELEASED_PARTITIONS = 2
    """The member is in the target's epoch, but other members have not given up yet what it should get."""
    UNKNOWN = 127
    """A state that a later Kafka has written."""


STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS, UNKNOWN = MemberState


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMember(CommittingMember):
    """A member of a consumer group, as a value.

    subscribed_topic_names: sorted, without repetitions. classic: set where the member speaks the classic
    protocol.
    """

    state: MemberState = STABLE
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str = ""
    server_assignor: str | None = None
    assigned: OwnedPartitions = field(default_factory=dict)
    pending_revocation: OwnedPartitions = field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    def is_subscribed_as(self, other: ConsumerGroupMember) -> bool:
        """Tell whether both name the same topics and use the same expression."""
        return (
            self.subscribed_topic_names == other.subscribed_topic_names
            and self.subscribed_topic_regex == other.subscribed_topic_regex
        )

    def is_reconciled_to(self, target_assignment_epoch: int) -> bool:
        return self.state is STABLE and self.member_epoch == target_assignment_epoch

    def in_epoch(self, member_epoch: int, **changes: object) -> ConsumerGroupMember:
        """The member in the given epoch; its epoch of now becomes the previous one."""
        return replace(
            self,
            member_epoch=member_epoch,
            previous_member_epoch=self.member_epoch,
            **changes,  # type: ignore[arg-type]
        )

    def assignment_epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which the partition was assigned to the member; None where it does not have it."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.pending_revocation.get(topic_id, {}).get(partition) if epoch is None else epoch

    # Records

    def metadata_value(self) -> ConsumerGroupMemberMetadataValue:
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=list(self.subscribed_topic_names),
            subscribed_topic_regex=self.subscribed_topic_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=self.classic,
        )

    def assignment_value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=self.state,
            assigned_partitions=_written(self.assigned),
            partitions_pending_revocation=_written(self.pending_revocation),
        )

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerGroupMember:
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=sorted_names(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerGroupMember:
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=_state(value.state),
            assigned=_read(value.assigned_partitions, value.member_epoch),
            pending_revocation=_read(value.partitions_pending_revocation, value.member_epoch),
        )

    def without_assignment(self) -> ConsumerGroupMember:
        return replace(
            self,
            member_epoch=LEAVING_EPOCH,
            previous_member_epoch=LEAVING_EPOCH,
            state=STABLE,
            assigned={},
            pending_revocation={},
        )


def _state(value: int) -> MemberState:
    return MemberState(value) if value in (STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS) else UNKNOWN


def _written(owned: OwnedPartitions) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=list(partitions), assignment_epochs=list(partitions.values()))
        for topic_id, partitions in owned.items()
    ]


def _read(written: list[TopicPartitions], member_epoch: int) -> dict[bytes, dict[int, int]]:
    owned: dict[bytes, dict[int, int]] = {}
    for topic in written:
        epochs = with_epochs(topic.partitions, topic.assignment_epochs, member_epoch)
        owned.setdefault(bytes(topic.topic_id), {}).update(epochs)
    return owned
