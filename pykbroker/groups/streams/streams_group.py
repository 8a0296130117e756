"""One streams group (KIP-1071): its epochs, its topology, its members, and what each of them should have.

The group epoch rises whenever a member comes, changes or leaves, and when the topics of the topology change. The
assignment epoch is the group epoch for which the target assignment was computed. A member's epoch catches up with the
assignment epoch by the member's own heartbeats. The state of the group is read from these numbers:

    EMPTY        the group has no members
    NOT_READY    topics are missing or do not fit the topology, which is not validated therefore
    ASSIGNING    the assignment epoch is behind the group epoch
    RECONCILING  a member is not STABLE in the assignment epoch yet
    STABLE       every member has its part of the target assignment

What must hold between steps:
- An active task has one owner at most, and a process has a task in one role at most.
- The group epoch and the assignment epoch never fall.
- What is derived from members is derived from the members as they are.

The group changes by records only, but for what the coordinator keeps for itself and does not need after a failover: the
configured topology, the endpoints, who asked for a shutdown, how far members have the state of tasks, and when a
description of the topology was asked for. The model is Kafka's `StreamsGroup`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final, Self

from ..common.group import Group, GroupType
from ..common.records import CoordinatorRecord
from ..common.topics import TopicsView
from ..modern.committing_group import CommittingGroup
from ..modern.modern_group import find_group
from .streams_group_member import NO_TOPOLOGY_EPOCH, StreamsGroupMember
from .streams_records import NO_DESCRIPTION, RECORDS, topology_tombstone
from .task_offsets import MemberTaskOffsets
from .tasks import NO_TASKS, OwnedTasks, Tasks, TasksTuple
from .topology import StreamsTopology

if TYPE_CHECKING:
    from pykbroker.protocol.messages.streams_groups import EndpointToPartitions

    from .configured_topology import ConfiguredTopology
    from .description_backoff import DescriptionBackoff

PROTOCOL_TYPE: Final = "streams"
NOT_VALIDATED: Final = -1


class StreamsGroupState(Enum):
    """The values are the names that ListGroups and StreamsGroupDescribe show."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class StreamsGroup(CommittingGroup[StreamsGroupMember, TasksTuple]):
    """A streams group, with what is derived from its members.

    topics: tells the names of topics that are committed for by their ids. endpoints: by member, as members were told.
    task_offsets: how far members have the state of tasks, as they told.
    is_of_4_4: whether the rules of Kafka 4.4 held for the group's newest heartbeat.
    stored_description_epoch, failed_description_epoch: of which topology a description is kept, and could not be.
    """

    type: ClassVar[GroupType] = GroupType.STREAMS

    def __init__(self, group_id: str, topics: TopicsView) -> None:
        super().__init__(group_id)
        self.validated_topology_epoch = 0
        self.last_assignment_configs: Mapping[str, str] = {}
        self.stored_description_epoch = NO_DESCRIPTION
        self.failed_description_epoch = NO_DESCRIPTION
        self.description_backoff: DescriptionBackoff | None = None
        self.topology: StreamsTopology | None = None
        self.configured: ConfiguredTopology | None = None
        self.shutdown_requested_by: str | None = None
        self.endpoint_information_epoch = 0
        self.endpoints: dict[str, EndpointToPartitions] = {}
        self.task_offsets: dict[str, MemberTaskOffsets] = {}
        self.is_of_4_4 = False
        self._topics = topics
        self._active: dict[str, dict[int, str]] = {}
        self._others: dict[str, dict[int, frozenset[str]]] = {}

    def copy(self) -> Self:
        """A group that no later change reaches. Members, tasks and topologies are values."""
        other = super().copy()
        other.endpoints = dict(self.endpoints)
        other.task_offsets = dict(self.task_offsets)
        other._active = {name: dict(owners) for name, owners in self._active.items()}
        other._others = {name: dict(owners) for name, owners in self._others.items()}
        return other

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    @property
    def state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.group_epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        return StreamsGroupState.STABLE if self.is_reconciled else StreamsGroupState.RECONCILING

    @property
    def topology_epoch(self) -> int:
        """The epoch of the topology; -1 where the group has none."""
        return NO_TOPOLOGY_EPOCH if self.topology is None else self.topology.epoch

    @property
    def topic_names(self) -> frozenset[str]:
        """The names of all topics that the topology needs."""
        return frozenset() if self.topology is None else self.topology.required_topics

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and topic in self.topology.subtopology_of_source

    def target_of(self, member_id: str) -> TasksTuple:
        return self.target_assignment.get(member_id, NO_TASKS)

    # Owners of tasks

    def active_process(self, subtopology_id: str, partition: int) -> str | None:
        """The id of the process that has the active task, or must still give it up."""
        return self._active.get(subtopology_id, {}).get(partition)

    def keeps_task(self, subtopology_id: str, partition: int, process_id: str) -> bool:
        """Tell whether the process has the task as standby or warm-up task, or must still give that up."""
        return process_id in self._others.get(subtopology_id, {}).get(partition, frozenset())

    def assignment_epoch_of(self, member: StreamsGroupMember, topic_id: bytes, partition: int) -> int | None:
        subtopology_of = {} if self.topology is None else self.topology.subtopology_of_source
        subtopology_id = subtopology_of.get(self._topics.topic_name(topic_id) or "")
        return None if subtopology_id is None else member.assignment_epoch_of(subtopology_id, partition)

    # Changes

    def put(self, member: StreamsGroupMember) -> None:
        """Add the member, or replace the value that the group had of it."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if old is not None and old.instance_id != member.instance_id:
            self._forget_instance(old)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.endpoints.pop(member.member_id, None)
        if old is not None and _held(old) == _held(member):
            return
        if old is not None:
            self._disown(old)
        for tasks in (member.assigned, member.pending_revocation):
            self._own(tasks, member.process_id)

    def remove(self, member_id: str) -> None:
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self.endpoints.pop(member_id, None)
        self.task_offsets.pop(member_id, None)
        self._forget_instance(old)
        self._disown(old)
        if not self.members:
            self.shutdown_requested_by = None

    def _forget_instance(self, member: StreamsGroupMember) -> None:
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]

    def configure(self, configured: ConfiguredTopology | None) -> None:
        self.configured = configured
        self.endpoints.clear()

    def _own(self, tasks: OwnedTasks, process_id: str) -> None:
        for subtopology_id, partitions in tasks.active.items():
            self._active.setdefault(subtopology_id, {}).update(dict.fromkeys(partitions, process_id))
        for others in (tasks.standby, tasks.warmup):
            self._own_others(others, process_id)

    def _own_others(self, tasks: Tasks, process_id: str) -> None:
        for subtopology_id, partitions in tasks.items():
            owners = self._others.setdefault(subtopology_id, {})
            for partition in partitions:
                owners[partition] = owners.get(partition, frozenset()) | {process_id}

    def _disown(self, member: StreamsGroupMember) -> None:
        for tasks in (member.assigned, member.pending_revocation):
            for subtopology_id, active in tasks.active.items():
                processes = self._active.get(subtopology_id, {})
                for partition in active:
                    if processes.get(partition) == member.process_id:
                        del processes[partition]
                if not processes:
                    self._active.pop(subtopology_id, None)
            for others in (tasks.standby, tasks.warmup):
                self._disown_others(others, member.process_id)

    def _disown_others(self, tasks: Tasks, process_id: str) -> None:
        for subtopology_id, partitions in tasks.items():
            owners = self._others.get(subtopology_id, {})
            for partition in partitions:
                rest = owners.get(partition, frozenset()) - {process_id}
                if rest:
                    owners[partition] = rest
                else:
                    owners.pop(partition, None)
            if not owners:
                self._others.pop(subtopology_id, None)

    # Records

    def tombstones(self) -> Iterator[CoordinatorRecord]:
        yield from RECORDS.tombstones_of_members(self.group_id, self.members)
        yield RECORDS.group_tombstone(self.group_id)
        yield topology_tombstone(self.group_id)


def _held(member: StreamsGroupMember) -> tuple[str, OwnedTasks, OwnedTasks]:
    return member.process_id, member.assigned, member.pending_revocation


def find_streams(groups: Mapping[str, Group], group_id: str) -> StreamsGroup | None:
    return find_group(groups, group_id, StreamsGroup)
