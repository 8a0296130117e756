"""ShareGroupHeartbeat (KIP-932): a member joins, stays, is told its assignment, and leaves.

One request does up to four things. It adds or changes the member, and with it the group's epoch; it computes the target
assignment where that is older than the group's epoch; the member takes its part of it; and partitions of subscribed
topics that the share coordinator has no state of are initialized, so that a later heartbeat can assign them. The model
is `shareGroupHeartbeat` of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.share_groups import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatResponseAssignment,
    ShareGroupHeartbeatResponseTopicPartitions,
)
from pykbroker.state_machine import CoordinatorContext

from ..assignors.model import Assignment
from ..common.config import GroupConfig, ShareGroupConfig
from ..common.context import Step
from ..common.deadlines import Deadlines
from ..common.group import Group, GroupType
from ..common.requests import MOST_NAMES
from ..common.topic_changes import TopicChanges
from ..common.topics import MetadataHash, TopicsView
from ..modern.heartbeat_rules import check_record_size, check_room, not_found
from ..modern.membership import ModernMembership, known_member
from ..modern.modern_member import JOINING_EPOCH, LEAVING_EPOCH, in_words, sorted_names
from .preparations import PreparedShareStep, ShareStepPreparation, told_partitions
from .share_group import ShareGroup, find_share
from .share_group_member import ShareGroupMember
from .share_records import assignment_record, group_epoch_record, member_record
from .share_replay import ShareReplay
from .share_targets import ShareTargets
from .state_changes import StateChanges


class ShareHeartbeats:
    """The rules of ShareGroupHeartbeat, and of sessions.

    config_of: the settings of a group by its id.
    """

    def __init__(
        self,
        config: GroupConfig,
        groups: dict[str, Group],
        deadlines: Deadlines,
        topics: TopicsView,
        metadata_hash: MetadataHash,
        topic_changes: TopicChanges,
        records: ShareReplay,
        targets: ShareTargets,
        states: StateChanges,
        config_of: Callable[[str], ShareGroupConfig],
    ) -> None:
        self._config = config
        self._groups = groups
        self._membership = ModernMembership(records, deadlines)
        self.keep_session = self._membership.keep_session
        self._topics = topics
        self._metadata_hash = metadata_hash
        self._topic_changes = topic_changes
        self._records = records
        self._targets = targets
        self._states = states
        self._config_of = config_of

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, context: CoordinatorContext, step: Step
    ) -> ShareGroupHeartbeatResponse:
        try:
            validate_request(request)
            if request.member_epoch == LEAVING_EPOCH:
                return self._leave(request, step)
            return self._beat(request, context, step)
        except ApiError as error:
            return refused_share_heartbeat(error)

    def preparation(self, request: ShareGroupHeartbeatRequest, api_version: int) -> ShareStepPreparation | None:
        """Return what may be computed of the heartbeat in a thread; None where that is little. It changes nothing."""
        group = find_share(self._groups, request.group_id)
        member = None if group is None else group.members.get(request.member_id)
        if group is None or member is None or request.member_epoch < JOINING_EPOCH:
            return None
        if member.is_reconciled_to(group.assignment_epoch) and not _asks_for_all(request):
            return None
        target = group.target_of(member.member_id)
        if not self._targets.is_large(target, member.assigned):
            return None
        return ShareStepPreparation(
            group=group,
            member=member,
            target=target,
            target_epoch=group.assignment_epoch,
            topics=self._topics.as_of_now(),
            version=api_version,
        )

    # Leaving

    def _leave(self, request: ShareGroupHeartbeatRequest, step: Step) -> ShareGroupHeartbeatResponse:
        """Raises ApiError."""
        group = find_share(self._groups, request.group_id)
        if group is None:
            raise not_found(self._groups, request.group_id, GroupType.SHARE, "Group")
        member = known_member(group, request.member_id)
        self._remove(group, member, "it left", step)
        return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    def _remove(self, group: ShareGroup, member: ShareGroupMember, cause: str, step: Step) -> None:
        self._membership.forget_member(group, member.member_id, step)
        step.because(group.group_id, f"{member.member_id} removed: {cause}")
        self._start_epoch(group, self._metadata_hash.of(group.topic_names), step)

    def expire_session(self, group: ShareGroup, member_id: str, step: Step) -> None:
        member = group.members.get(member_id)
        if member is not None:
            self._remove(group, member, "no heartbeat within its session timeout", step)

    # Joining and staying

    def _beat(
        self, request: ShareGroupHeartbeatRequest, context: CoordinatorContext, step: Step
    ) -> ShareGroupHeartbeatResponse:
        """Join the member, or keep its session. Raises ApiError. Everything is validated before anything changes."""
        is_joining = request.member_epoch == JOINING_EPOCH
        group = self._find_group(request.group_id, is_joining=is_joining)
        if request.member_id not in group.members:
            check_room(group, GroupType.SHARE, self._config.share_max_size)
        is_new = is_joining and request.member_id not in group.members
        before = ShareGroupMember(member_id=request.member_id) if is_new else known_member(group, request.member_id)
        _validate_epoch(before, request.member_epoch)
        updated = _updated(before, request, context)
        if updated != before:
            record = member_record(group.group_id, updated)
            check_record_size("member's subscription takes", record, self._config.max_record_bytes)
        self._groups[group.group_id] = group
        topics_changed, starts_epoch = self._put(group, before, updated, step, is_new=is_new)
        config = self._config_of(group.group_id)
        self._targets.update_if_due(group, config.assignment_interval_ms, step)
        prepared = context.prepared if isinstance(context.prepared, PreparedShareStep) else None
        current = self._reconcile(group, updated, prepared, step, has_subscription_changed=starts_epoch)
        self.keep_session(group, current.member_id, config.session_timeout_ms, step)
        self._states.initialize_if_due(group, step, topics_changed=topics_changed)
        has_changed = before.assigned is not current.assigned and before.assigned != current.assigned
        return ShareGroupHeartbeatResponse(
            member_id=current.member_id,
            member_epoch=current.member_epoch,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            assignment=_told(current.assigned, prepared) if has_changed or _asks_for_all(request) else None,
        )

    def _find_group(self, group_id: str, *, is_joining: bool) -> ShareGroup:
        """The group, or a new one. Raises ApiError. Changes nothing. No group of another type becomes a share group."""
        group = self._groups.get(group_id)
        if group is None and is_joining:
            return ShareGroup(group_id)
        if not isinstance(group, ShareGroup):
            raise not_found(self._groups, group_id, GroupType.SHARE)
        return group

    def _put(
        self, group: ShareGroup, before: ShareGroupMember, updated: ShareGroupMember, step: Step, *, is_new: bool
    ) -> tuple[bool, bool]:
        """Put the member into the group. Tell whether topics of the group have changed, and whether an epoch begins.

        What another coordinator began to initialize is begun again in an epoch of its own: a request of that one's that
        is late comes with an epoch that is over, and takes nothing away that members have got done meanwhile.
        """
        starts_epoch = updated.subscribed_topic_names != before.subscribed_topic_names
        if updated != before or is_new:
            self._records.change(member_record(group.group_id, updated), step)
            comes = "joined, and subscribes" if is_new else "subscribes"
            topics = in_words(updated.subscribed_topic_names)
            step.because(group.group_id, f"{updated.member_id} {comes} to {topics}")
        if group.assignment_epoch >= group.group_epoch and self._targets.is_pending(group):
            step.because(group.group_id, "partitions were initialized that nobody has yet")
            starts_epoch = True
        if group.is_initialization_inherited:
            step.because(group.group_id, "another coordinator began to initialize partitions")
            group.is_initialization_inherited = False
            starts_epoch = True
        topics_changed = self._topic_changes.concern(group)
        metadata_hash = group.metadata_hash
        if topics_changed or not group.is_hashed:
            metadata_hash = self._metadata_hash.of(group.topic_names)
            group.is_hashed = True
            self._topic_changes.are_seen_by(group)
        if starts_epoch or metadata_hash != group.metadata_hash:
            starts_epoch = True
            self._start_epoch(group, metadata_hash, step)
        return topics_changed, starts_epoch

    def _start_epoch(self, group: ShareGroup, metadata_hash: int, step: Step) -> None:
        """Raise the group's epoch, so that a new target assignment is computed."""
        record = group_epoch_record(group.group_id, group.group_epoch + 1, metadata_hash)
        self._records.begin_epoch(group, record, step)

    def _reconcile(
        self,
        group: ShareGroup,
        member: ShareGroupMember,
        prepared: PreparedShareStep | None,
        step: Step,
        *,
        has_subscription_changed: bool,
    ) -> ShareGroupMember:
        """Give the member its part of the target assignment, without topics that it is not subscribed to any more.

        Where that is large it is taken from what was prepared; where it was not, a later heartbeat brings it. Raises
        ApiError where the record of a large one has no room in the log.
        """
        epoch = group.assignment_epoch
        if not has_subscription_changed and member.is_reconciled_to(epoch):
            return member
        whole = group.target_of(member.member_id)
        if prepared is not None and not has_subscription_changed and prepared.fits(group, member, whole):
            return self._take_prepared(group, member, prepared, step)
        if self._targets.is_too_large(whole):
            return member
        target = self._filtered(group, whole, member)
        is_behind = epoch != member.member_epoch
        current = member.in_epoch(epoch, target) if is_behind else replace(member, assigned=target)
        if current != member:
            self._records.change(assignment_record(group.group_id, current), step)
            step.because(group.group_id, f"{member.member_id} has its part of epoch {epoch}")
        return current

    def _take_prepared(
        self, group: ShareGroup, member: ShareGroupMember, prepared: PreparedShareStep, step: Step
    ) -> ShareGroupMember:
        if prepared.record is None:
            return member
        check_record_size("partitions of the member take", prepared.record, self._config.max_record_bytes)
        current = prepared.applied_to(member)
        step.append(prepared.record)
        group.put(current)
        step.because(group.group_id, f"{current.member_id} has its part of epoch {current.member_epoch}")
        return current

    def _filtered(self, group: ShareGroup, target: Assignment, member: ShareGroupMember) -> Assignment:
        if group.is_homogeneous and target.keys() <= self._targets.assignable(group).keys():
            return target
        names = set(member.subscribed_topic_names)
        if all(self._topics.topic_name(topic_id) in names for topic_id in target):
            return target
        return {topic_id: each for topic_id, each in target.items() if self._topics.topic_name(topic_id) in names}


def validate_request(request: ShareGroupHeartbeatRequest) -> None:
    """Raises ApiError for fields that are missing or empty, in the order in which Kafka looks at them
    (`GroupCoordinatorService.throwIfShareGroupHeartbeatRequestIsInvalid`)."""
    names = request.subscribed_topic_names
    if not request.member_id.strip():
        raise ApiError(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    if not request.group_id.strip():
        raise ApiError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise ApiError(ErrorCode.INVALID_REQUEST, "RackId can't be empty.")
    if request.member_epoch == JOINING_EPOCH and not names:
        raise ApiError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVING_EPOCH:
        raise ApiError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if names is not None and len(names) > MOST_NAMES:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"SubscribedTopicNames has more than {MOST_NAMES} names.")


def refused_share_heartbeat(error: ApiError) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


def _validate_epoch(member: ShareGroupMember, epoch: int) -> None:
    """The answer that brought the newest epoch may have been lost: the member may send the one before. Raises
    ApiError."""
    if epoch in (JOINING_EPOCH, member.member_epoch, member.previous_member_epoch):
        return
    which = "greater" if epoch > member.member_epoch else "smaller"
    words = (
        f"The share group member has a {which} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.member_epoch})"
    )
    if epoch < member.member_epoch:
        words += f", and it does not match the previous member epoch ({member.previous_member_epoch})"
    raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, f"{words}. The member must abandon all its partitions and rejoin.")


def _updated(
    member: ShareGroupMember, request: ShareGroupHeartbeatRequest, context: CoordinatorContext
) -> ShareGroupMember:
    """The member as the request describes it. Fields that the request leaves out keep their values."""
    names = request.subscribed_topic_names
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        subscribed_topic_names=member.subscribed_topic_names if names is None else sorted_names(names),
        client_id=context.client_id,
        client_host=context.client_host,
    )


def _asks_for_all(request: ShareGroupHeartbeatRequest) -> bool:
    """Tell whether the answer has the assignment also where it has not changed."""
    return request.member_epoch == JOINING_EPOCH or request.subscribed_topic_names is not None


def _told(assigned: Assignment, prepared: PreparedShareStep | None) -> ShareGroupHeartbeatResponseAssignment:
    if prepared is not None and prepared.current.assigned is assigned:
        return ShareGroupHeartbeatResponseAssignment(
            topic_partitions=prepared.told.of(ShareGroupHeartbeatResponseTopicPartitions)
        )
    return ShareGroupHeartbeatResponseAssignment(topic_partitions=told_partitions(assigned))
