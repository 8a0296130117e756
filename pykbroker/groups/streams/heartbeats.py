"""StreamsGroupHeartbeat (KIP-1071): a member joins, brings the topology, is told its tasks, and leaves.

One request does up to four things. It adds or changes the member; it compares the topology with the topics that there
are, where one of the two has changed; it computes the target assignment where that is older than the group's epoch; and
the member takes its next step towards its target. Everything that may be refused is looked at before anything changes.
The model is `streamsGroupHeartbeat` of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.streams_groups import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)
from pykbroker.state_machine import CoordinatorContext

from ..classic.classic_group import ClassicGroup
from ..common.config import GroupConfig, StreamsGroupConfig
from ..common.context import Step
from ..common.group import Group, GroupType
from ..common.requests import StreamsHeartbeatAnswer
from ..common.topic_changes import TopicChanges
from ..common.topics import MetadataHash, TopicsView
from ..modern.heartbeat_rules import NO_REBALANCE_TIMEOUT, check_record_size, check_room, not_found
from ..modern.membership import known_member, known_static_member
from ..modern.modern_member import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH
from .assignment_tasks import RACK_AWARE_TAGS, STANDBY_REPLICAS
from .configured_topology import ConfiguredTopology, StatusCode, configure
from .endpoints import partitions_by_endpoint
from .heartbeat_validation import validate_epoch, validate_request, validate_tasks
from .membership import StreamsMembership
from .reconciliation import Reconciliation, ReconciliationOf44
from .streams_group import StreamsGroup, find_streams
from .streams_group_member import UNREVOKED_TASKS, StreamsGroupMember
from .streams_records import assignment_record, member_record, topology_record
from .streams_replay import StreamsReplay
from .target_assignment import StreamsTargetAssignments
from .task_offsets import NOT_TOLD, MemberTaskOffsets, told_offsets
from .tasks import NO_TASKS, TasksTuple, in_order, tasks_of
from .topology import StreamsTopology, topology_of
from .topology_descriptions import StreamsDescriptions

_FIRST_VERSION_OF_4_4: Final = 1

OnConversion = Callable[[ClassicGroup, Step], None]
"""Called with an empty classic group that gives way to a streams group."""


@dataclass(slots=True)
class _Beat:
    """A heartbeat that was found to be in order, with what it will change.

    is_new: whether the group is not among the shard's groups yet. topology: of the group after this. metadata_hash:
    over its topics. is_hash_looked_at: whether the hash was computed for this heartbeat. version: of the request.
    is_of_4_4: whether the rules are those of Kafka 4.4: of a cluster of 4.4, or of a request that came with it.
    replaced: the static member whose place the member takes. offsets: of tasks, where the request tells some.
    """

    group: StreamsGroup
    before: StreamsGroupMember
    updated: StreamsGroupMember
    topology: StreamsTopology
    configured: ConfiguredTopology
    metadata_hash: int
    is_new: bool
    is_hash_looked_at: bool
    version: int = 0
    is_of_4_4: bool = False
    replaced: StreamsGroupMember | None = None
    offsets: MemberTaskOffsets | None = None
    statuses: list[Status] = field(default_factory=list)


class StreamsHeartbeats:
    """The rules of StreamsGroupHeartbeat.

    groups: the shard's groups of all types, shared with it. config_of: the settings of a group by its id. descriptions:
    of topologies, where something keeps them.
    """

    def __init__(
        self,
        config: GroupConfig,
        groups: dict[str, Group],
        records: StreamsReplay,
        membership: StreamsMembership,
        targets: StreamsTargetAssignments,
        topics: TopicsView,
        metadata_hash: MetadataHash,
        topic_changes: TopicChanges,
        config_of: Callable[[str], StreamsGroupConfig],
        on_conversion: OnConversion,
        descriptions: StreamsDescriptions | None,
    ) -> None:
        self._config = config
        self._groups = groups
        self._records = records
        self._membership = membership
        self._targets = targets
        self._topics = topics
        self._metadata_hash = metadata_hash
        self._topic_changes = topic_changes
        self._config_of = config_of
        self._on_conversion = on_conversion
        self._descriptions = descriptions

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, context: CoordinatorContext, step: Step
    ) -> StreamsHeartbeatAnswer:
        try:
            is_of_4_4 = context.api_version >= _FIRST_VERSION_OF_4_4 or self._config_of(request.group_id).is_of_4_4
            validate_request(request, is_of_4_4=is_of_4_4)
            if request.member_epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH):
                return StreamsHeartbeatAnswer(self._leave(request, step))
            beat = self._prepare(request, context, is_of_4_4=is_of_4_4)
            answer = self._carry_out(beat, request, step)
            if beat.version >= _FIRST_VERSION_OF_4_4:
                self._ask_for_description(beat, answer.response, step)
            return answer
        except ApiError as error:
            return StreamsHeartbeatAnswer(refused_heartbeat(error))

    def _ask_for_description(self, beat: _Beat, response: StreamsGroupHeartbeatResponse, step: Step) -> None:
        """Ask for the description of the topology, unless the member's topology is stale (KIP-1331)."""
        is_stale = any(each.status_code == StatusCode.STALE_TOPOLOGY for each in beat.statuses)
        if self._descriptions is not None and not is_stale:
            response.topology_description_required = self._descriptions.ask(beat.group, beat.topology.epoch, step)

    # Leaving

    def _leave(self, request: StreamsGroupHeartbeatRequest, step: Step) -> StreamsGroupHeartbeatResponse:
        """Raises ApiError."""
        group = find_streams(self._groups, request.group_id)
        if group is None:
            raise not_found(self._groups, request.group_id, GroupType.STREAMS, "Group")
        if request.shutdown_application:
            _request_shutdown(group, request.member_id)
        if request.instance_id is None:
            member = known_member(group, request.member_id)
        else:
            member = known_static_member(group, request.member_id, request.instance_id)
        if request.member_epoch == STATIC_LEAVING_EPOCH:
            self._membership.leave_for_a_while(group, member, step)
        else:
            self._membership.remove(group, member, "it left", step)
        return StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch, status=[])

    # Joining and staying: what will change

    def _prepare(self, request: StreamsGroupHeartbeatRequest, context: CoordinatorContext, *, is_of_4_4: bool) -> _Beat:
        """Look at everything that may be refused. Raises ApiError. Changes nothing that lasts."""
        is_joining = request.member_epoch == JOINING_EPOCH
        group = self._find_group(request.group_id, is_joining=is_joining)
        is_known = request.member_id in group.members or group.static_member(request.instance_id) is not None
        if is_joining and not (is_of_4_4 and is_known):
            check_room(group, GroupType.STREAMS, self._config.streams_max_size)
        member, replaced = self._find_member(group, request, is_joining=is_joining)
        validate_epoch(member, request)
        updated = _updated(member, request, context)
        if is_of_4_4 and is_joining and request.user_endpoint is None:
            updated = replace(updated, user_endpoint=None)
        topology = _topology_after(group, request)
        beat = self._configured_beat(group, member, updated, topology)
        beat.version, beat.is_of_4_4, beat.replaced = context.api_version, is_of_4_4, replaced
        if beat.configured.is_ready:
            validate_tasks(beat.configured, request)
        if request.task_offsets is not None or request.task_end_offsets is not None:
            before = group.task_offsets.get(member.member_id, NOT_TOLD)
            beat.offsets = told_offsets(before, request.task_offsets, request.task_end_offsets, beat.configured)
        self._validate_sizes(beat)
        return beat

    def _find_member(
        self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, *, is_joining: bool
    ) -> tuple[StreamsGroupMember, StreamsGroupMember | None]:
        """The member that the request speaks for, and the static member whose place it takes. Raises ApiError."""
        member_id, instance_id = request.member_id, request.instance_id
        if not is_joining:
            if instance_id is not None:
                return known_static_member(group, member_id, instance_id), None
            return known_member(group, member_id), None
        if instance_id is not None:
            old = self._membership.joining_static_member(group, member_id, instance_id)
            if old is not None:
                return replace(old, member_id=member_id, member_epoch=0, previous_member_epoch=0), old
        return group.members.get(member_id) or StreamsGroupMember(member_id=member_id), None

    def _find_group(self, group_id: str, *, is_joining: bool) -> StreamsGroup:
        """The group, or a new one. Raises ApiError."""
        group = self._groups.get(group_id)
        if isinstance(group, StreamsGroup):
            return group
        if is_joining and (group is None or (isinstance(group, ClassicGroup) and group.is_empty)):
            return StreamsGroup(group_id, self._topics)
        raise not_found(self._groups, group_id, GroupType.STREAMS)

    def _configured_beat(
        self,
        group: StreamsGroup,
        member: StreamsGroupMember,
        updated: StreamsGroupMember,
        topology: StreamsTopology,
    ) -> _Beat:
        """Compare the topology with its topics, where one of the two has changed. Raises ApiError."""
        configured, metadata_hash = group.configured, group.metadata_hash
        is_known = configured is not None and group.topology is not None
        is_looked_at = not is_known or self._topic_changes.concern(group)
        if is_looked_at:
            metadata_hash = self._metadata_hash.of(topology.required_topics)
        if configured is None or group.topology is None or metadata_hash != group.metadata_hash:
            configured = configure(topology, self._topics)
        is_new = self._groups.get(group.group_id) is not group
        return _Beat(group, member, updated, topology, configured, metadata_hash, is_new, is_looked_at)

    def _validate_sizes(self, beat: _Beat) -> None:
        """Raises ApiError for a record that is too large: a failed append makes all groups load again."""
        group_id, most_bytes = beat.group.group_id, self._config.max_record_bytes
        if beat.updated != beat.before:
            check_record_size("member's metadata takes", member_record(group_id, beat.updated), most_bytes)
        if beat.topology is not beat.group.topology:
            check_record_size("topology takes", topology_record(group_id, beat.topology), most_bytes)
        self._validate_assignment_size(beat.configured)

    def _validate_assignment_size(self, configured: ConfiguredTopology) -> None:
        """Raises ApiError where the record of one member with all tasks could not be written."""
        subtopologies = configured.subtopologies or {}
        names = sum(len(subtopology_id.encode()) for subtopology_id in subtopologies)
        # A subtopology may be in both lists of the record: of what a member has, and of what it must give up.
        size_bytes = 8 * configured.task_count + 2 * (names + 16 * len(subtopologies))
        if size_bytes > self._config.max_record_bytes:
            words = f"The tasks of the topology take {size_bytes} bytes, of {self._config.max_record_bytes} at most."
            raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, words)

    # Joining and staying: the changes

    def _carry_out(self, beat: _Beat, request: StreamsGroupHeartbeatRequest, step: Step) -> StreamsHeartbeatAnswer:
        """Change the group and the member as the request says. Raises ApiError where the member has to start anew; what
        it said of itself is written nevertheless."""
        group, config = beat.group, self._config_of(beat.group.group_id)
        group.is_of_4_4 = beat.is_of_4_4
        was_empty = group.is_empty
        self._tell_stale_topology(beat)
        self._enter_group(beat, step)
        configs = _assignment_configs(config)
        if beat.replaced is not None:
            self._membership.replace_static_member(group, beat.replaced, beat.before, step)
        self._put(beat, configs, step)
        if beat.offsets is not None:
            group.task_offsets[beat.updated.member_id] = beat.offsets
        if was_empty:
            self._membership.begin_initial_delay(group.group_id, config.initial_rebalance_delay_ms, step)
        target = self._target(beat, config, step)
        current = self._reconcile(group, target, request, step)
        self._membership.keep_session(group, current.member_id, config.session_timeout_ms, step)
        if request.shutdown_application:
            _request_shutdown(group, request.member_id)
        return self._answer(beat, current, request, config)

    def _tell_stale_topology(self, beat: _Beat) -> None:
        known, epoch = beat.group.topology, beat.updated.topology_epoch
        if known is not None and epoch < known.epoch:
            words = f"The member's topology epoch {epoch} is behind the group's topology epoch {known.epoch}."
            beat.statuses.append(Status(status_code=StatusCode.STALE_TOPOLOGY, status_detail=words))

    def _enter_group(self, beat: _Beat, step: Step) -> None:
        known = self._groups.get(beat.group.group_id)
        if isinstance(known, ClassicGroup):
            self._on_conversion(known, step)
        self._groups[beat.group.group_id] = beat.group

    def _put(self, beat: _Beat, configs: Mapping[str, str], step: Step) -> None:
        """Put member and topology into the group, and begin an epoch where something has changed."""
        group = beat.group
        has_changed = beat.updated != beat.before or beat.updated.member_id not in group.members
        counts = has_changed and (beat.updated.instance_id is None or _differ_for_others(beat.before, beat.updated))
        if has_changed:
            joins = "joined" if beat.updated.member_id not in group.members else "has changed"
            step.because(group.group_id, f"{beat.updated.member_id} {joins}")
            self._records.change(member_record(group.group_id, beat.updated), step)
        if beat.topology is not group.topology:
            self._records.change(topology_record(group.group_id, beat.topology), step)
        if beat.configured is not group.configured:
            group.configure(beat.configured)
        if beat.is_hash_looked_at:
            self._topic_changes.are_seen_by(group)
        validated_epoch = beat.topology.epoch if beat.configured.is_ready else -1
        if beat.metadata_hash != group.metadata_hash and not counts:
            step.because(group.group_id, "a topic of its topology was created, deleted, grown or moved")
        if (
            counts
            or beat.metadata_hash != group.metadata_hash
            or validated_epoch != group.validated_topology_epoch
            or configs != group.last_assignment_configs
        ):
            group.last_assignment_configs = configs
            self._membership.start_epoch(group, beat.metadata_hash, validated_epoch, step)

    def _target(self, beat: _Beat, config: StreamsGroupConfig, step: Step) -> TasksTuple:
        """The member's part of the target assignment, which is computed where that is due."""
        group = beat.group
        if self._membership.is_delayed(group.group_id):
            words = "Assignment delayed due to the configured initial rebalance delay."
            beat.statuses.append(Status(status_code=StatusCode.ASSIGNMENT_DELAYED, status_detail=words))
            return NO_TASKS
        if group.assignment_epoch < group.group_epoch:
            if self._targets.is_due(group, config.assignment_interval_ms, step):
                self._targets.update(group, step)
            else:
                words = "Assignment delayed due to the configured assignment interval."
                beat.statuses.append(Status(status_code=StatusCode.ASSIGNMENT_DELAYED, status_detail=words))
        return group.target_of(beat.updated.member_id)

    def _reconcile(
        self, group: StreamsGroup, target: TasksTuple, request: StreamsGroupHeartbeatRequest, step: Step
    ) -> StreamsGroupMember:
        """Raises ApiError where the member has to start anew."""
        member = group.members[request.member_id]
        if member.is_reconciled_to(group.assignment_epoch):
            return member
        rules = ReconciliationOf44 if group.is_of_4_4 else Reconciliation
        current = rules(group, member, group.assignment_epoch, target, _owned(request)).next()
        if current is None:
            words = "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
            raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, words)
        if current == member:
            return member
        self._records.change(assignment_record(group.group_id, current), step)
        step.because(group.group_id, f"{member.member_id} is {current.state.name} at {current.member_epoch}")
        if current.state is UNREVOKED_TASKS:
            self._membership.await_revocation(group, current, step)
        else:
            self._membership.stop_awaiting_revocation(group, current)
        return current

    # The answer

    def _answer(
        self,
        beat: _Beat,
        current: StreamsGroupMember,
        request: StreamsGroupHeartbeatRequest,
        config: StreamsGroupConfig,
    ) -> StreamsHeartbeatAnswer:
        group = beat.group
        response = StreamsGroupHeartbeatResponse(
            member_id=current.member_id,
            member_epoch=current.member_epoch,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
        )
        if beat.is_of_4_4:
            response.task_offset_interval_ms = config.task_offset_interval_ms
            response.acceptable_recovery_lag = config.acceptable_recovery_lag
        is_assigned_anew = current.assigned != beat.before.assigned
        if request.member_epoch == JOINING_EPOCH or is_assigned_anew:
            response.active_tasks = _told(current.assigned.active.items())
            response.standby_tasks = _told(current.assigned.standby.items())
            response.warmup_tasks = _told(current.assigned.warmup.items())
        if beat.is_of_4_4:
            has_moved = current.user_endpoint != beat.before.user_endpoint
        else:
            has_moved = request.member_epoch == JOINING_EPOCH and current.user_endpoint is not None
        if has_moved or (is_assigned_anew and current.user_endpoint is not None):
            group.endpoint_information_epoch += 1
        if group.endpoint_information_epoch != request.endpoint_information_epoch:
            response.partitions_by_user_endpoint = partitions_by_endpoint(group, current, self._topics)
        response.endpoint_information_epoch = group.endpoint_information_epoch
        if beat.configured.problem is not None:
            code, words = beat.configured.problem
            beat.statuses.append(Status(status_code=code, status_detail=words))
        if group.shutdown_requested_by is not None:
            words = (
                f"Streams group member {group.shutdown_requested_by} encountered a fatal error and requested a "
                "shutdown for the entire application."
            )
            beat.statuses.append(Status(status_code=StatusCode.SHUTDOWN_APPLICATION, status_detail=words))
        if beat.version >= _FIRST_VERSION_OF_4_4:
            _tell_missing_tags(beat, config)
        response.status = beat.statuses
        if beat.is_new:
            # As in Kafka, a group that comes by this request keeps its records alone.
            response.endpoint_information_epoch = 0
            group.endpoint_information_epoch, group.shutdown_requested_by = 0, None
            group.configure(None)
        missing = tuple(topic.creatable() for topic in beat.configured.missing.values())
        return StreamsHeartbeatAnswer(response, missing)

    # The initial delay

    def expire_initial_delay(self, group: StreamsGroup, step: Step) -> None:
        """Assign the tasks to the members that have come meanwhile. Members hear of it one by one."""
        if group.is_empty or group.configured is None:
            return
        self._targets.update_if_due(group, self._config_of(group.group_id).assignment_interval_ms, step)


def _assignment_configs(config: StreamsGroupConfig) -> dict[str, str]:
    """The settings by which assignments are made, as the group's record has them."""
    configs = {STANDBY_REPLICAS: str(config.num_standby_replicas)}
    return configs | {RACK_AWARE_TAGS: ",".join(config.rack_aware_tags)} if config.rack_aware_tags else configs


def _tell_missing_tags(beat: _Beat, config: StreamsGroupConfig) -> None:
    missing = [tag for tag in config.rack_aware_tags if tag not in beat.updated.client_tags]
    if missing:
        words = (
            f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. Configure them "
            "via 'client.tag.<tagKey>' in your Streams config."
        )
        beat.statuses.append(Status(status_code=StatusCode.MISSING_CLIENT_TAGS, status_detail=words))


def refused_heartbeat(error: ApiError) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


def _differ_for_others(before: StreamsGroupMember, after: StreamsGroupMember) -> bool:
    """Tell whether a static member has changed in what assignments depend on."""
    return (before.topology_epoch, before.rack_id, before.client_tags, before.process_id) != (
        after.topology_epoch,
        after.rack_id,
        after.client_tags,
        after.process_id,
    )


def _request_shutdown(group: StreamsGroup, member_id: str) -> None:
    if group.shutdown_requested_by is None:
        group.shutdown_requested_by = member_id


def _topology_after(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsTopology:
    """The group's topology, or the one that its first member brings. Raises ApiError where a member brings another."""
    if request.topology is None:
        if group.topology is None:
            words = "The topology is null and the group topology is also null."
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, words)
        return group.topology
    brought = topology_of(request.topology)
    if group.topology is None:
        return brought
    if group.topology.epoch <= brought.epoch and group.topology != brought:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return group.topology


def _updated(
    member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest, context: CoordinatorContext
) -> StreamsGroupMember:
    """The member as the request describes it. Fields that the request leaves out keep their values."""
    endpoint, tags, timeout_ms = request.user_endpoint, request.client_tags, request.rebalance_timeout_ms
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_REBALANCE_TIMEOUT else timeout_ms,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        process_id=member.process_id if request.process_id is None else request.process_id,
        user_endpoint=member.user_endpoint if endpoint is None else (endpoint.host, endpoint.port),
        client_tags=member.client_tags if tags is None else {tag.key: tag.value for tag in tags},
        client_id=context.client_id,
        client_host=context.client_host,
    )


def _owned(request: StreamsGroupHeartbeatRequest) -> TasksTuple | None:
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None
    return TasksTuple(tasks_of(request.active_tasks), tasks_of(request.standby_tasks), tasks_of(request.warmup_tasks))


def _told(tasks: Iterable[tuple[str, Iterable[int]]]) -> list[TaskIds]:
    return [
        TaskIds(subtopology_id=subtopology_id, partitions=partitions)
        for subtopology_id, partitions in in_order({name: list(each) for name, each in tasks})
    ]
