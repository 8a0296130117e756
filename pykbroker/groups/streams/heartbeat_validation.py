"""The rules for the fields of a StreamsGroupHeartbeat, and for its member epoch.

The models are Kafka's `GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid` and its neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestTopology,
    TaskIds,
)

from ..common.group import GroupType
from ..modern.heartbeat_rules import NO_REBALANCE_TIMEOUT, check_epoch_of_member
from ..modern.modern_member import JOINING_EPOCH, STATIC_LEAVING_EPOCH
from .configured_topology import ConfiguredTopology
from .streams_group_member import StreamsGroupMember
from .topology import too_large

MOST_CLIENT_TAGS = 1_000


def validate_request(request: StreamsGroupHeartbeatRequest, *, is_of_4_4: bool = False) -> None:
    """Raises ApiError for fields that are missing, empty, too large or not supported.

    is_of_4_4: whether the rules are those of Kafka 4.4, which has static members and offsets of tasks.
    """
    wrong = None if is_of_4_4 else _what_is_of_4_4(request)
    wrong = wrong or _what_is_not_supported(request) or _what_is_empty(request) or _what_is_wrong_with_epoch(request)
    wrong = wrong or _what_is_wrong_with_tasks(request) or _what_is_too_large(request)
    if wrong is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, wrong)


def _what_is_of_4_4(request: StreamsGroupHeartbeatRequest) -> str | None:
    if request.instance_id is not None:
        return "Static membership is not yet supported."
    if request.task_offsets is not None:
        return "TaskOffsets are not supported yet."
    if request.task_end_offsets is not None:
        return "TaskEndOffsets are not supported yet."
    if request.warmup_tasks:
        return "WarmupTasks are not supported yet."
    return None


def _what_is_not_supported(request: StreamsGroupHeartbeatRequest) -> str | None:
    if request.topology is not None and any(each.source_topic_regex for each in request.topology.subtopologies):
        return "Regular expressions for source topics are not supported yet."
    return None


def _what_is_empty(request: StreamsGroupHeartbeatRequest) -> str | None:
    if not request.member_id.strip():
        return "MemberId can't be empty."
    if not request.group_id.strip():
        return "GroupId can't be empty."
    if request.instance_id is not None and not request.instance_id.strip():
        return "InstanceId can't be empty."
    if request.rack_id is not None and not request.rack_id.strip():
        return "RackId can't be empty."
    return None


def _what_is_wrong_with_epoch(request: StreamsGroupHeartbeatRequest) -> str | None:
    """Raises ApiError for a topology that no group can have."""
    if request.member_epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == NO_REBALANCE_TIMEOUT:
            return "RebalanceTimeoutMs must be provided in first request."
        for name, tasks in (
            ("ActiveTasks", request.active_tasks),
            ("StandbyTasks", request.standby_tasks),
            ("WarmupTasks", request.warmup_tasks),
        ):
            if tasks is None or tasks:
                return f"{name} must be empty when (re-)joining."
        if request.topology is None:
            return "Topology must be non-null when (re-)joining."
        _check_subtopologies(request.topology)
        _check_changelogs(request)
    elif request.member_epoch == STATIC_LEAVING_EPOCH:
        return "InstanceId can't be null." if request.instance_id is None else None
    elif request.member_epoch < STATIC_LEAVING_EPOCH:
        return f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2."
    return None


def _check_subtopologies(topology: StreamsGroupHeartbeatRequestTopology) -> None:
    """Raises ApiError where two subtopologies have one id; Kafka fails within (UNKNOWN_SERVER_ERROR)."""
    counted = Counter(each.subtopology_id for each in topology.subtopologies)
    for name, count in counted.items():
        if count > 1:
            words = f"{count} subtopologies have the id {name}."
            raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, words)


def _check_changelogs(request: StreamsGroupHeartbeatRequest) -> None:
    """The coordinator decides how many partitions a changelog has. Raises ApiError where a member does."""
    assert request.topology is not None
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions != 0:
                words = (
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )
                raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, words)


def _what_is_wrong_with_tasks(request: StreamsGroupHeartbeatRequest) -> str | None:
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(each is not None for each in tasks) and any(each is None for each in tasks):
        return "If one task-type is non-null, all must be non-null."
    if request.member_epoch != JOINING_EPOCH and request.topology is not None:
        return "Topology can only be provided when (re-)joining."
    return None


def _what_is_too_large(request: StreamsGroupHeartbeatRequest) -> str | None:
    """Raises ApiError for a topology with more than a group can have."""
    if request.topology is not None:
        if request.topology.epoch < 0:
            return "Topology epoch must be non-negative."
        reason = too_large(request.topology)
        if reason is not None:
            raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, reason)
    if len(request.client_tags or ()) > MOST_CLIENT_TAGS:
        return f"ClientTags has more than {MOST_CLIENT_TAGS} entries."
    return None


def _reported(request: StreamsGroupHeartbeatRequest) -> Sequence[Sequence[TaskIds]]:
    return request.active_tasks or (), request.standby_tasks or (), request.warmup_tasks or ()


def validate_epoch(member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest) -> None:
    """Raises ApiError for an epoch that is neither the member's nor, as long as it reports no task that it was not
    given, the one before."""
    check_epoch_of_member(GroupType.STREAMS, member, request.member_epoch, lambda: _owns_what_it_has(member, request))


def _owns_what_it_has(member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest) -> bool:
    return (
        _is_subset(request.active_tasks, member.assigned.active)
        and _is_subset(request.standby_tasks, member.assigned.standby)
        and _is_subset(request.warmup_tasks, member.assigned.warmup)
    )


def _is_subset(reported: Sequence[TaskIds] | None, assigned: Mapping[str, Collection[int]]) -> bool:
    if reported is None:
        return False
    return all(
        each.subtopology_id in assigned
        and all(partition in assigned[each.subtopology_id] for partition in each.partitions)
        for each in reported
    )


def validate_tasks(configured: ConfiguredTopology, request: StreamsGroupHeartbeatRequest) -> None:
    """Raises ApiError where the member reports a task that the topology does not have."""
    subtopologies = configured.subtopologies or {}
    for tasks in _reported(request):
        for each in tasks:
            subtopology = subtopologies.get(each.subtopology_id)
            if subtopology is None:
                words = f"Subtopology {each.subtopology_id} does not exist in the topology."
                raise ApiError(ErrorCode.INVALID_REQUEST, words)
            for partition in each.partitions:
                if not 0 <= partition < subtopology.task_count:
                    words = (
                        f"Task {partition} for subtopology {each.subtopology_id} is invalid. Number of tasks for this "
                        f"subtopology: {subtopology.task_count}"
                    )
                    raise ApiError(ErrorCode.INVALID_REQUEST, words)
