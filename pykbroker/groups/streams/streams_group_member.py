"""A member of a streams group (KIP-1071): what it said of itself, the tasks that it has, and its epochs.

A member is a value: every change makes a new one, by a record. It moves through three states, and only its own
heartbeats move it (`reconciliation`):

    STABLE             the member has its part of the target assignment, as of its epoch
    UNREVOKED_TASKS    the member was told to give up `pending_revocation`, and has not confirmed it
    UNRELEASED_TASKS   the member is in the target's epoch, and other members still have what it should get

UNKNOWN is a state that a later Kafka has written; such a member has to start anew. The model is Kafka's
`StreamsGroupMember`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from pykbroker.protocol.messages.streams_group_records import (
    Endpoint,
    KeyValue,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupCurrentMemberAssignmentValueTaskIds,
    StreamsGroupMemberMetadataValue,
)

from ..modern.committing_group import CommittingMember
from ..modern.modern_member import LEAVING_EPOCH, with_epochs
from .tasks import NOTHING_OWNED, OwnedTasks, Tasks, TasksWithEpochs, in_order, tasks_of

NO_TOPOLOGY_EPOCH: Final = -1


class MemberState(IntEnum):
    """The values are those of Kafka's records."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


STABLE, UNREVOKED_TASKS, UNRELEASED_TASKS, UNKNOWN = MemberState


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupMember(CommittingMember):
    """A member of a streams group, as a value.

    process_id: of the process that the member is a thread of. user_endpoint: host and port where the process answers
    interactive queries.
    """

    previous_member_epoch: int = 0
    state: MemberState = STABLE
    topology_epoch: int = NO_TOPOLOGY_EPOCH
    process_id: str = ""
    user_endpoint: tuple[str, int] | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: OwnedTasks = NOTHING_OWNED
    pending_revocation: OwnedTasks = NOTHING_OWNED

    def is_reconciled_to(self, target_assignment_epoch: int) -> bool:
        return self.state is STABLE and self.member_epoch == target_assignment_epoch

    def in_epoch(
        self,
        member_epoch: int,
        state: MemberState,
        assigned: OwnedTasks,
        pending_revocation: OwnedTasks = NOTHING_OWNED,
    ) -> StreamsGroupMember:
        """The member in the given epoch; its epoch of now becomes the previous one."""
        return replace(
            self,
            member_epoch=member_epoch,
            previous_member_epoch=self.member_epoch,
            state=state,
            assigned=assigned,
            pending_revocation=pending_revocation,
        )

    def assignment_epoch_of(self, subtopology_id: str, partition: int) -> int | None:
        """The epoch in which the active task was assigned to the member; None where it does not have it."""
        epoch = self.assigned.active.get(subtopology_id, {}).get(partition)
        return self.pending_revocation.active.get(subtopology_id, {}).get(partition) if epoch is None else epoch

    # Records

    def metadata_value(self) -> StreamsGroupMemberMetadataValue:
        endpoint = self.user_endpoint
        return StreamsGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
            client_tags=[KeyValue(key=key, value=self.client_tags[key]) for key in sorted(self.client_tags)],
        )

    def assignment_value(self) -> StreamsGroupCurrentMemberAssignmentValue:
        return StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=self.state,
            active_tasks=_written_with_epochs(self.assigned.active),
            standby_tasks=_written(self.assigned.standby),
            warmup_tasks=_written(self.assigned.warmup),
            active_tasks_pending_revocation=_written_with_epochs(self.pending_revocation.active),
            standby_tasks_pending_revocation=_written(self.pending_revocation.standby),
            warmup_tasks_pending_revocation=_written(self.pending_revocation.warmup),
        )

    def with_metadata(self, value: StreamsGroupMemberMetadataValue) -> StreamsGroupMember:
        endpoint = value.user_endpoint
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
            client_tags={tag.key: tag.value for tag in value.client_tags},
        )

    def with_assignment(self, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsGroupMember:
        epoch = value.member_epoch
        return replace(
            self,
            member_epoch=epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=_state(value.state),
            assigned=OwnedTasks(
                _read_with_epochs(value.active_tasks, epoch),
                tasks_of(value.standby_tasks),
                tasks_of(value.warmup_tasks),
            ),
            pending_revocation=OwnedTasks(
                _read_with_epochs(value.active_tasks_pending_revocation, epoch),
                tasks_of(value.standby_tasks_pending_revocation),
                tasks_of(value.warmup_tasks_pending_revocation),
            ),
        )

    def without_assignment(self) -> StreamsGroupMember:
        return replace(
            self,
            member_epoch=LEAVING_EPOCH,
            previous_member_epoch=LEAVING_EPOCH,
            assigned=NOTHING_OWNED,
            pending_revocation=NOTHING_OWNED,
        )


def _state(value: int) -> MemberState:
    return MemberState(value) if value in (STABLE, UNREVOKED_TASKS, UNRELEASED_TASKS) else UNKNOWN


def _written(tasks: Tasks) -> list[StreamsGroupCurrentMemberAssignmentValueTaskIds]:
    return [
        StreamsGroupCurrentMemberAssignmentValueTaskIds(subtopology_id=subtopology_id, partitions=partitions)
        for subtopology_id, partitions in in_order(tasks)
    ]


def _written_with_epochs(tasks: TasksWithEpochs) -> list[StreamsGroupCurrentMemberAssignmentValueTaskIds]:
    return [
        StreamsGroupCurrentMemberAssignmentValueTaskIds(
            subtopology_id=subtopology_id,
            partitions=partitions,
            assignment_epochs=[tasks[subtopology_id][partition] for partition in partitions],
        )
        for subtopology_id, partitions in in_order(tasks)
    ]


def _read_with_epochs(
    written: Sequence[StreamsGroupCurrentMemberAssignmentValueTaskIds], member_epoch: int
) -> dict[str, dict[int, int]]:
    tasks: dict[str, dict[int, int]] = {}
    for each in written:
        if each.partitions:
            epochs = with_epochs(each.partitions, each.assignment_epochs, member_epoch)
            tasks.setdefault(each.subtopology_id, {}).update(epochs)
    return tasks
