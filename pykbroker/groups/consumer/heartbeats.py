"""ConsumerGroupHeartbeat (KIP-848): a member joins, reports what it owns, is told its assignment, and leaves.

One request does up to three things. It adds or changes the member, and with it the group's epoch; it computes the
target assignment where that is older than the group's epoch; and the member takes its next step towards its target. The
model is `consumerGroupHeartbeat` of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from pykbroker.state_machine import CoordinatorContext

from ..classic.classic_group import ClassicGroup
from ..common.config import ConsumerGroupConfig, GroupConfig
from ..common.context import Step
from ..common.group import Group, GroupType
from ..modern.heartbeat_rules import NO_REBALANCE_TIMEOUT, check_record_size, check_room, not_found
from ..modern.membership import known_static_member
from ..modern.modern_member import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH, sorted_names
from .consumer_group import ConsumerGroup, find_consumer
from .consumer_group_member import ConsumerGroupMember
from .consumer_records import member_record
from .heartbeat_validation import validate_epoch, validate_request
from .member_progress import Heard, MemberProgress
from .membership import ConsumerMembership, new_member_id
from .migration import Migration
from .preparations import PreparedStep, Reported, StepPreparation, told_partitions
from .regular_expressions import invalid_reason


class ConsumerHeartbeats:
    """The rules of ConsumerGroupHeartbeat.

    config_of: the settings of a group by its id.
    """

    def __init__(
        self,
        config: GroupConfig,
        groups: dict[str, Group],
        membership: ConsumerMembership,
        progress: MemberProgress,
        migration: Migration,
        config_of: Callable[[str], ConsumerGroupConfig],
        rng: Random,
    ) -> None:
        self._config = config
        self._groups = groups
        self._membership = membership
        self._progress = progress
        self._migration = migration
        self._config_of = config_of
        self._rng = rng

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: CoordinatorContext, step: Step
    ) -> ConsumerGroupHeartbeatResponse:
        try:
            validate_request(request, context.api_version, self._config.consumer_assignors)
            if request.member_epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH):
                return self._leave(request, step)
            return self._beat(request, context, step)
        except ApiError as error:
            return refused_heartbeat(error)

    def preparation(self, request: ConsumerGroupHeartbeatRequest, api_version: int) -> StepPreparation | None:
        """Return what may be computed of the heartbeat in a thread; None where that is little. It changes nothing."""
        group = find_consumer(self._groups, request.group_id)
        member = None if group is None else group.members.get(request.member_id)
        if group is None or member is None or request.member_epoch < JOINING_EPOCH:
            return None
        if member.is_reconciled_to(group.assignment_epoch) and not _asks_for_all(request):
            return None
        return self._progress.preparation(group, member, request, api_version)

    # Leaving

    def _leave(self, request: ConsumerGroupHeartbeatRequest, step: Step) -> ConsumerGroupHeartbeatResponse:
        """Remove the member, or keep its place where it will be back. Raises ApiError."""
        group = find_consumer(self._groups, request.group_id)
        if group is None:
            raise not_found(self._groups, request.group_id, GroupType.CONSUMER, "Group")
        if request.instance_id is None:
            member = self._membership.find_member(group, request.member_id, None, is_joining=False)
        else:
            member = known_static_member(group, request.member_id, request.instance_id)
        if request.member_epoch == STATIC_LEAVING_EPOCH:
            self._membership.leave_for_a_while(group, member, step)
        else:
            self._membership.remove(group, [member], "it left", step)
        return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    # Joining and staying

    def _beat(
        self, request: ConsumerGroupHeartbeatRequest, context: CoordinatorContext, step: Step
    ) -> ConsumerGroupHeartbeatResponse:
        """Join the member, or keep its session. Raises ApiError. Everything is validated before anything changes."""
        is_joining = request.member_epoch == JOINING_EPOCH
        group = self._find_group(request.group_id, is_joining=is_joining)
        if not self._progress.has_place(group, request.member_id, request.instance_id):
            check_room(group, GroupType.CONSUMER, self._config.consumer_max_size)
        member_id = request.member_id or new_member_id(self._rng)
        prepared = context.prepared if isinstance(context.prepared, PreparedStep) else None
        owned = Reported(request) if prepared is None else prepared.reported
        member = self._membership.find_member(group, member_id, request.instance_id, is_joining=is_joining)
        is_behind = request.member_epoch != member.member_epoch
        validate_epoch(member, request.member_epoch, owned.partitions if is_behind else None)
        _validate_regex(group, member, request)
        updated = _updated(member, request, context)
        if updated != member:
            record = member_record(group.group_id, updated)
            check_record_size("member's subscription takes", record, self._config.max_record_bytes)
        self._enter_group(group, step)
        if is_joining and group.static_member(request.instance_id) is not None:
            member = self._membership.replace_static_member(group, member, member_id, step)
            updated = _updated(member, request, context)
        return self._carry_out(
            group, member, updated, request, Heard(lambda: owned.partitions, prepared, may_wait=True), step
        )

    def _carry_out(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        updated: ConsumerGroupMember,
        request: ConsumerGroupHeartbeatRequest,
        heard: Heard,
        step: Step,
    ) -> ConsumerGroupHeartbeatResponse:
        """Changes the group and the member as the request says. Raises ApiError where the member has to start anew; its
        subscription is written nevertheless."""
        config = self._config_of(group.group_id)
        current = self._progress.advance(group, member, updated, heard, step)
        if current is None:
            words = "The consumer group member is in an unknown state. It must abandon all its partitions and rejoin."
            raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, words)
        self._membership.keep_session(group, member.member_id, config.session_timeout_ms, step)
        return ConsumerGroupHeartbeatResponse(
            member_id=current.member_id,
            member_epoch=current.member_epoch,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            assignment=_told(current, heard.prepared) if _is_to_be_told(request, member, current) else None,
        )

    def _find_group(self, group_id: str, *, is_joining: bool) -> ConsumerGroup:
        """The group, a new one, or the one that a classic group would become. Raises ApiError. Changes nothing."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if is_joining and group is None:
            return ConsumerGroup(group_id)
        if is_joining and isinstance(group, ClassicGroup):
            return ConsumerGroup(group_id) if group.is_empty else self._migration.upgraded(group)
        raise not_found(self._groups, group_id, GroupType.CONSUMER)

    def _enter_group(self, group: ConsumerGroup, step: Step) -> None:
        known = self._groups.get(group.group_id)
        if isinstance(known, ClassicGroup):
            self._migration.upgrade(known, group, step)
        self._groups[group.group_id] = group


def refused_heartbeat(error: ApiError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


def _validate_regex(group: ConsumerGroup, member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> None:
    """Raises ApiError for an expression that is not valid. One that another member is subscribed to is known to be
    valid."""
    expression = request.subscribed_topic_regex
    if not expression or expression == member.subscribed_topic_regex or group.subscribed_regexes[expression]:
        return
    reason = invalid_reason(expression)
    if reason is not None:
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, reason)


def _updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, context: CoordinatorContext
) -> ConsumerGroupMember:
    """The member as the request describes it. Fields that the request leaves out keep their values."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_REBALANCE_TIMEOUT else timeout_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else sorted_names(names),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=context.client_id,
        client_host=context.client_host,
        classic=None,
    )


def _is_to_be_told(
    request: ConsumerGroupHeartbeatRequest, before: ConsumerGroupMember, now: ConsumerGroupMember
) -> bool:
    """Tell whether the answer has the assignment: for a member that joins or sends all fields, and where it changed."""
    if _asks_for_all(request):
        return True
    return before.assigned is not now.assigned and before.assigned != now.assigned


def _asks_for_all(request: ConsumerGroupHeartbeatRequest) -> bool:
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    is_full = (
        request.rebalance_timeout_ms != NO_REBALANCE_TIMEOUT
        and has_subscription
        and request.topic_partitions is not None
    )
    return request.member_epoch == JOINING_EPOCH or is_full


def _told(member: ConsumerGroupMember, prepared: PreparedStep | None) -> ConsumerGroupHeartbeatResponseAssignment:
    if prepared is not None and prepared.current is not None and prepared.current.assigned is member.assigned:
        return ConsumerGroupHeartbeatResponseAssignment(
            topic_partitions=prepared.told.of(ConsumerGroupHeartbeatResponseTopicPartitions)
        )
    return ConsumerGroupHeartbeatResponseAssignment(topic_partitions=told_partitions(member.assigned))
