"""ConsumerGroupHeartbeat (KIP-848): a member joins, says what it wants and has, hears what it should have, and leaves.

One request does up to three things: the member is made or changed, and with it the group's epoch; the target assignment
is computed where it is older than that epoch; the member goes its next step towards it. The model is
`consumerGroupHeartbeat` of Kafka's `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from pykbroker.state_machine import Token

from ..classic.classic_group import ClassicGroup
from ..common.config import ConsumerGroupConfig, GroupConfig
from ..common.context import GroupRequestContext, Step
from ..common.refusal import Refusal
from .consumer_group import ConsumerGroup
from .consumer_heartbeat_validation import NO_REBALANCE_TIMEOUT, validate_epoch, validate_request
from .consumer_member import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH, ConsumerMember, in_order
from .consumer_membership import ConsumerMembership, new_member_id
from .consumer_records import member_record
from .group_types import Group, find_consumer
from .member_progress import MemberProgress
from .migration import Migration
from .reconciliation import ReportedPartitions
from .regular_expressions import RegularExpressions


class ConsumerHeartbeats:
    """config_of: the settings of a group by its id; groups may have their own."""

    def __init__(
        self,
        config: GroupConfig,
        groups: dict[str, Group],
        membership: ConsumerMembership,
        progress: MemberProgress,
        migration: Migration,
        regexes: RegularExpressions,
        config_of: Callable[[str], ConsumerGroupConfig],
        rng: Random,
    ) -> None:
        self._config = config
        self._groups = groups
        self._membership = membership
        self._progress = progress
        self._migration = migration
        self._regexes = regexes
        self._config_of = config_of
        self._rng = rng

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, token: Token, context: GroupRequestContext, step: Step
    ) -> None:
        refusal = validate_request(request, context.api_version, self._config.consumer_assignors)
        if refusal is not None:
            answer = refused_heartbeat(refusal)
        elif request.member_epoch in (LEAVING_EPOCH, STATIC_LEAVING_EPOCH):
            answer = self._leave(request, step)
        else:
            answer = self._beat(request, context, step)
        step.answer(token, answer)

    # Leaving

    def _leave(self, request: ConsumerGroupHeartbeatRequest, step: Step) -> ConsumerGroupHeartbeatResponse:
        group = find_consumer(self._groups, request.group_id)
        if group is None:
            return refused_heartbeat(self._not_found(request.group_id, "Group"))
        if request.instance_id is None:
            member = self._membership.find_member(group, request.member_id, None, is_joining=False)
        else:
            member = self._membership.known_static_member(group, request.member_id, request.instance_id)
        if isinstance(member, Refusal):
            return refused_heartbeat(member)
        if request.member_epoch == STATIC_LEAVING_EPOCH:
            self._membership.leave_for_a_while(group, member, step)
        else:
            self._membership.remove(group, [member], "it left", step)
        return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)

    # Joining and staying

    def _beat(
        self, request: ConsumerGroupHeartbeatRequest, context: GroupRequestContext, step: Step
    ) -> ConsumerGroupHeartbeatResponse:
        is_joining = request.member_epoch == JOINING_EPOCH
        group = self._find_group(request.group_id, is_joining=is_joining)
        if isinstance(group, Refusal):
            return refused_heartbeat(group)
        if len(group.members) >= self._config.consumer_max_size and request.member_id not in group.members:
            words = f"The consumer group has reached its maximum capacity of {self._config.consumer_max_size} members."
            return refused_heartbeat(Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, words))
        member_id = request.member_id or new_member_id(self._rng)
        owned = _reported(request)
        member = self._membership.find_member(group, member_id, request.instance_id, is_joining=is_joining)
        if not isinstance(member, Refusal):
            member = validate_epoch(member, request.member_epoch, owned) or member
        if isinstance(member, Refusal):
            return refused_heartbeat(member)
        refusal = self._validate_regex(group, member, request) or self._validate_size(group, member, request, context)
        if refusal is not None:
            return refused_heartbeat(refusal)
        self._enter_group(group, step)
        if is_joining and group.static_member(request.instance_id) is not None:
            member = self._membership.replace_static_member(group, member, member_id, step)
        return self._carry_out(group, member, request, owned, context, step)

    def _carry_out(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest,
        owned: ReportedPartitions | None,
        context: GroupRequestContext,
        step: Step,
    ) -> ConsumerGroupHeartbeatResponse:
        config = self._config_of(group.group_id)
        current = self._progress.advance(group, member, _updated(member, request, context), owned, step)
        if current is None:
            words = "The consumer group member is in an unknown state. It must abandon all its partitions and rejoin."
            return refused_heartbeat(Refusal(ErrorCode.FENCED_MEMBER_EPOCH, words))
        self._membership.keep_session(group, member.member_id, config.session_timeout_ms, step)
        return ConsumerGroupHeartbeatResponse(
            member_id=current.member_id,
            member_epoch=current.member_epoch,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            assignment=_told(current) if _is_to_be_told(request, member, current) else None,
        )

    def _find_group(self, group_id: str, *, is_joining: bool) -> ConsumerGroup | Refusal:
        """A classic group becomes one of the new protocol where somebody joins it who speaks that."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if is_joining and (group is None or group.is_empty):
            return ConsumerGroup(group_id)
        return self._not_found(group_id) if not is_joining or group is None else self._migration.upgraded(group)

    def _not_found(self, group_id: str, kind: str = "Consumer group") -> Refusal:
        is_other = group_id in self._groups
        words = f"Group {group_id} is not a consumer group." if is_other else f"{kind} {group_id} not found."
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, words)

    def _enter_group(self, group: ConsumerGroup, step: Step) -> None:
        known = self._groups.get(group.group_id)
        if isinstance(known, ClassicGroup):
            self._migration.upgrade(known, group, step)
        self._groups[group.group_id] = group

    def _validate_regex(
        self, group: ConsumerGroup, member: ConsumerMember, request: ConsumerGroupHeartbeatRequest
    ) -> Refusal | None:
        """What another member is subscribed to is known to be valid."""
        expression = request.subscribed_topic_regex
        if not expression or expression == member.subscribed_topic_regex or group.subscribed_regexes[expression]:
            return None
        reason = self._regexes.invalid_reason(expression)
        return None if reason is None else Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, reason)

    def _validate_size(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest,
        context: GroupRequestContext,
    ) -> Refusal | None:
        """What could not be written down must not be begun: all groups of the partition would be read anew."""
        updated = _updated(member, request, context)
        if updated == member:
            return None
        size_bytes = member_record(group.group_id, updated).size_bytes
        if size_bytes <= self._config.max_record_bytes:
            return None
        words = f"The member's subscription takes {size_bytes} bytes, of {self._config.max_record_bytes} at most."
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, words)


def refused_heartbeat(refusal: Refusal) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=refusal.error_code, error_message=refusal.message)


def _updated(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, context: GroupRequestContext
) -> ConsumerMember:
    """What the request leaves out stays as it is."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_REBALANCE_TIMEOUT else timeout_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else in_order(names),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=context.client_id,
        client_host=context.client_host,
        classic=None,
    )


def _reported(request: ConsumerGroupHeartbeatRequest) -> ReportedPartitions | None:
    if request.topic_partitions is None:
        return None
    owned: dict[bytes, set[int]] = {}
    for topic in request.topic_partitions:
        owned.setdefault(bytes(topic.topic_id), set()).update(topic.partitions)
    return owned


def _is_to_be_told(request: ConsumerGroupHeartbeatRequest, before: ConsumerMember, now: ConsumerMember) -> bool:
    """Whoever joins or sends everything gets everything; others hear of changes."""
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    is_full = (
        request.rebalance_timeout_ms != NO_REBALANCE_TIMEOUT
        and has_subscription
        and request.topic_partitions is not None
    )
    return request.member_epoch == JOINING_EPOCH or is_full or before.assigned != now.assigned


def _told(member: ConsumerMember) -> ConsumerGroupHeartbeatResponseAssignment:
    return ConsumerGroupHeartbeatResponseAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in member.assigned.items()
        ]
    )
