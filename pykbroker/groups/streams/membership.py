"""Membership of a streams group: members are removed, and have deadlines.

The model is Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from dataclasses import replace

from ..common.context import Step
from ..common.deadlines import RevocationTimeout, StreamsInitialDelay
from ..modern.membership import ModernMembership, unreleased
from ..modern.modern_member import STATIC_LEAVING_EPOCH
from .streams_group import StreamsGroup
from .streams_group_member import StreamsGroupMember
from .streams_records import RECORDS, group_record
from .tasks import NOTHING_OWNED, OwnedTasks, TasksTuple


class StreamsMembership(ModernMembership[StreamsGroup, StreamsGroupMember, TasksTuple]):
    """The membership of streams groups."""

    def remove(self, group: StreamsGroup, member: StreamsGroupMember, cause: str, step: Step) -> None:
        """Remove the member. Those that stay learn of it by a new group epoch."""
        step.because(group.group_id, f"{member.member_id} removed: {cause}")
        self.forget_member(group, member.member_id, step)
        self.start_epoch(group, group.metadata_hash, group.validated_topology_epoch, step)
        if group.is_of_4_4 and group.is_empty:
            self._records.change(RECORDS.target_epoch(group.group_id, group.group_epoch, 0), step)

    # Static members

    def joining_static_member(self, group: StreamsGroup, member_id: str, instance_id: str) -> StreamsGroupMember | None:
        """The static member that comes back under this id; None where it is new. Raises ApiError. Changes nothing."""
        member = group.static_member(instance_id)
        if member is not None and member.member_epoch != STATIC_LEAVING_EPOCH:
            raise unreleased(member, member_id, instance_id)
        return member

    def replace_static_member(
        self, group: StreamsGroup, old: StreamsGroupMember, new: StreamsGroupMember, step: Step
    ) -> None:
        """Give the member's place, with all that it has, to a new member id."""
        target = group.target_of(old.member_id)
        self.forget_member(group, old.member_id, step)
        self._records.change(RECORDS.member(group.group_id, new), step)
        self._records.change(RECORDS.target(group.group_id, new.member_id, target), step)
        self._records.change(RECORDS.assignment(group.group_id, new), step)
        step.because(group.group_id, f"{new.member_id} is static member {old.instance_id} now, not {old.member_id}")

    def leave_for_a_while(self, group: StreamsGroup, member: StreamsGroupMember, step: Step) -> None:
        """A static member leaves and will be back: it keeps what it has as long as its session lasts."""
        assigned = member.assigned
        active = {name: dict.fromkeys(partitions, 0) for name, partitions in assigned.active.items()}
        away = replace(
            member,
            member_epoch=STATIC_LEAVING_EPOCH,
            assigned=OwnedTasks(active, assigned.standby, assigned.warmup),
            pending_revocation=NOTHING_OWNED,
        )
        self._records.change(RECORDS.assignment(group.group_id, away), step)
        step.because(group.group_id, f"static member {member.instance_id} left for a while")

    def start_epoch(self, group: StreamsGroup, metadata_hash: int, validated_topology_epoch: int, step: Step) -> None:
        """Raise the group's epoch, with the settings of assignments that it has."""
        epoch = group.group_epoch + 1
        configs = group.last_assignment_configs
        record = group_record(
            group.group_id,
            epoch,
            metadata_hash,
            validated_topology_epoch,
            configs,
            stored_description_epoch=group.stored_description_epoch,
            failed_description_epoch=group.failed_description_epoch,
        )
        self._records.begin_epoch(group, record, step)

    # Timeouts

    def expire_session(self, group: StreamsGroup, member_id: str, step: Step) -> None:
        member = group.members.get(member_id)
        if member is not None:
            self.remove(group, member, "its session ended", step)

    def expire_revocation(self, group: StreamsGroup, timeout: RevocationTimeout, step: Step) -> None:
        """Remove a member that did not give up its tasks within its rebalance timeout."""
        member = group.members.get(timeout.member_id)
        if member is not None and member.member_epoch == timeout.member_epoch:
            self.remove(group, member, f"it did not move on from epoch {timeout.member_epoch} in time", step)

    # The initial delay

    def begin_initial_delay(self, group_id: str, delay_ms: int, step: Step) -> None:
        """Have a group that was empty wait for more members before its first assignment, unless it waits already."""
        timeout = StreamsInitialDelay(group_id)
        if delay_ms > 0 and timeout not in self._deadlines:
            self._deadlines.schedule(timeout, step.now_ms + delay_ms)

    def is_delayed(self, group_id: str) -> bool:
        return StreamsInitialDelay(group_id) in self._deadlines

    def forget(self, group_id: str) -> None:
        """Cancel what an empty group that is being deleted waits for."""
        self._deadlines.cancel(StreamsInitialDelay(group_id))
